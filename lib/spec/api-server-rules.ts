import { type Address, canonicalAddress, parseAddress } from '../allocator/ip-address.ts';
import { isLinkLocal, isLinkLocalMulticast, isLoopback, isMulticast, isUnspecified } from '../allocator/network.ts';
import { readServiceRanges } from '../cluster/spec-parts.ts';
import { firstIndexes, isRecord } from '../cluster/values.ts';
import type { AddressChoice } from './host-address.ts';
import { isHostName } from './names.ts';
import { fault, type SpecFault, type SpecPath } from './spec-fault.ts';
import type { ServerDraft, SpecDraft } from './spec-shape.ts';

export interface SpecOptions {
  /**
   * Returns the address for `address: auto`: set only by code that runs on the API server's own host
   * (`chooseAdvertiseAddress`). Without it `auto` is refused. Called only if the spec contains `auto`.
   */
  readonly autoAddress?: () => AddressChoice;
}

const AUTO = 'auto';
const NOT_HERE = "an address may be auto only in code that runs on the API server's own host";

/** Replaces `auto` by the chosen address; where it cannot, the rules refuse it. */
export function withAutoAddress(value: unknown, { autoAddress }: SpecOptions): { value: unknown; refusal: string } {
  const servers = isRecord(value) && Array.isArray(value['apiServers']) ? value['apiServers'] : [];
  if (autoAddress === undefined || !servers.some(isAuto)) return { value, refusal: NOT_HERE };

  const choice = autoAddress();
  if (choice instanceof Error) return { value, refusal: choice.message };
  const chosen = servers.map((server) => (isAuto(server) ? { ...server, address: choice.address } : server));
  return { value: { ...Object(value), apiServers: chosen }, refusal: NOT_HERE };
}

function isAuto(server: unknown): server is { readonly address: string } {
  return isRecord(server) && server['address'] === AUTO;
}

/** `autoRefusal`: the reason why `auto` is refused. */
export function apiServerFaults(draft: SpecDraft, autoRefusal: string): SpecFault[] {
  const { apiServers: servers, endpoints } = draft;
  if (servers?.length === 0 && endpoints?.reconciler !== undefined && endpoints.reconciler !== 'none') {
    return [fault(['apiServers'], NO_SERVERS, 'list the address or host of each, or set endpoints.reconciler to none')];
  }
  const known = (servers ?? []).map((server) => canonicalName(server));
  const first = firstIndexes(known);
  return (servers ?? []).flatMap((server, index) =>
    server === undefined
      ? []
      : [
          ...serverFaults(['apiServers', index], server, draft, autoRefusal),
          ...duplicateFaults(['apiServers', index], server, first.get(known[index]) ?? index, index),
          ...probeFaults(['apiServers', index, 'probe'], server.probe ?? {}),
        ],
  );
}

const NO_SERVERS = 'is empty: without an API server the kubernetes Service has no endpoints';

function serverFaults(at: SpecPath, server: ServerDraft, draft: SpecDraft, autoRefusal: string): SpecFault[] {
  const { address, host } = server;
  if (address !== undefined && host !== undefined) {
    return [fault(at, 'has both an address and a host', 'keep one: a host stands for every address of its name')];
  }
  if (address !== undefined) return addressFaults([...at, 'address'], address, draft, autoRefusal);
  if (host !== undefined) return hostFaults(at, host, server.kind);
  // The shape has reported an address or a host that is not text.
  const isAbsent = !('address' in server) && !('host' in server);
  return isAbsent
    ? [fault(at, 'has neither an address nor a host', 'write address: 203.0.113.10 or host: api.example.com')]
    : [];
}

/** Checks that an address is accepted by the API in Endpoints, and of the family of the kubernetes Service. */
function addressFaults(at: SpecPath, text: string, draft: SpecDraft, autoRefusal: string): SpecFault[] {
  if (text === AUTO) return [fault(at, autoRefusal, 'write the address itself')];
  const address = parseAddress(text);
  if (address === undefined) {
    const fix = isHostName(text)
      ? `for a host name write host: ${text}`
      : 'write an address such as 203.0.113.10 or 2001:db8::10';
    return [fault(at, `${JSON.stringify(text)} is no IP address`, fix)];
  }
  const unfit = unfitForEndpoints(address, text);
  if (unfit !== undefined)
    return [
      fault(at, unfit, 'write the address that clients in the cluster reach; a probe may go elsewhere with probe.url'),
    ];
  return familyFaults(at, text, address, draft);
}

/** `ValidateNonSpecialIP` of `pkg/apis/core/validation/validation.go`, without any multicast. */
function unfitForEndpoints(address: Address, text: string): string | undefined {
  if (isUnspecified(address)) return `may not be unspecified (${text})`;
  if (isLoopback(address)) return 'may not be in the loopback range (127.0.0.0/8, ::1/128)';
  if (isLinkLocal(address)) return 'may not be in the link-local range (169.254.0.0/16, fe80::/10)';
  if (isLinkLocalMulticast(address)) return 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)';
  return isMulticast(address) ? 'may not be a multicast address' : undefined;
}

/** Checks the family: the kubernetes Service has only that of the primary range; with `none` nothing is published. */
function familyFaults(at: SpecPath, text: string, address: Address, draft: SpecDraft): SpecFault[] {
  const reconciler = draft.endpoints?.reconciler;
  if (reconciler === undefined || reconciler === 'none' || draft.serviceClusterIPRange === undefined) return [];
  const { primary } = readServiceRanges(draft.serviceClusterIPRange);
  if (primary === undefined || primary.family === address.family) return [];
  const message = `service IP family "${primary.text}" must match public address family "${canonicalAddress(text)}"`;
  return [
    fault(
      at,
      message,
      `write an ${primary.family} address, or put a range of ${address.family} first in serviceClusterIPRange`,
    ),
  ];
}

function hostFaults(at: SpecPath, host: string, kind: ServerDraft['kind']): SpecFault[] {
  const faults = kind === 'server' ? [fault([...at, 'kind'], HOST_IS_SHARED, 'leave it out, or write shared')] : [];
  if (parseAddress(host) !== undefined) {
    return [...faults, fault([...at, 'host'], `${host} is an address`, `write address: ${host}`)];
  }
  if (!isHostName(host)) {
    faults.push(
      fault(
        [...at, 'host'],
        `${JSON.stringify(host)} is no host name`,
        'write a DNS name such as api.example.com, without scheme and port',
      ),
    );
  }
  return faults;
}

const HOST_IS_SHARED = 'what a host name stands for is always shared: its addresses change';

function duplicateFaults(at: SpecPath, server: ServerDraft, first: number, index: number): SpecFault[] {
  if (canonicalName(server) === undefined || first === index) return [];
  const field = server.address === undefined ? 'host' : 'address';
  return [fault([...at, field], `apiServers[${first}] is the same`, 'list each API server once')];
}

/** Returns the name under which two entries are the same; `undefined` without address and host. */
function canonicalName(server: ServerDraft | undefined): string | undefined {
  return server?.address === undefined
    ? server?.host?.toLowerCase()
    : (canonicalAddress(server.address) ?? server.address);
}

function probeFaults(at: SpecPath, probe: NonNullable<ServerDraft['probe']>): SpecFault[] {
  const { url, path, authenticate } = probe;
  const faults: SpecFault[] = [];
  if (path !== undefined && !/^\/[^\s#]*$/.test(path)) {
    faults.push(fault([...at, 'path'], `${JSON.stringify(path)} is no path`, 'write a path such as /readyz'));
  }
  if (url === undefined) return faults;
  if (path !== undefined) {
    faults.push(fault([...at, 'path'], 'has no meaning beside probe.url', 'put the path into the url'));
  }
  return [...faults, ...urlFaults([...at, 'url'], url, authenticate === true)];
}

function urlFaults(at: SpecPath, text: string, authenticate: boolean): SpecFault[] {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    const fix = 'write a whole URL such as https://10.0.0.10:6443/readyz';
    return [fault(at, `${JSON.stringify(text)} is no http or https URL`, fix)];
  }
  if (url.username !== '' || url.password !== '') {
    const fix = 'take it out; probe.authenticate sends the one of the kubeconfig';
    return [fault(at, 'carries a credential, which would be kept and logged', fix)];
  }
  if (!authenticate || url.protocol === 'https:') return [];
  const message = 'would carry the credential of probe.authenticate in the clear';
  return [fault(at, message, 'write an https URL, or leave out probe.authenticate')];
}
