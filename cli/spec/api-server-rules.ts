import { type Address, canonicalAddress, parseAddress } from '../../lib/allocator/ip-address.ts';
import {
  isLinkLocal,
  isLinkLocalMulticast,
  isLoopback,
  isMulticast,
  isUnspecified,
} from '../../lib/allocator/network.ts';
import { nameOfEntry, readServiceRanges, TARGET_GROUP } from '../../lib/cluster/spec-parts.ts';
import { firstIndexes } from '../../lib/cluster/values.ts';
import { kubeconfigFaults } from './kubeconfig-rules.ts';
import { isDnsLabel, isHostName } from './names.ts';
import { fault, type SpecFault, type SpecPath } from './spec-fault.ts';
import type { ServerDraft, SpecDraft } from './spec-shape.ts';

export function apiServerFaults(draft: SpecDraft): SpecFault[] {
  const { apiServers: servers, endpoints } = draft;
  if (servers?.length === 0 && endpoints?.reconciler !== undefined && endpoints.reconciler !== 'none') {
    return [fault(['apiServers'], NO_SERVERS, 'list the address or host of each, or set endpoints.reconciler to none')];
  }
  const known = (servers ?? []).map((server) => server && nameOfEntry(server));
  const first = firstIndexes(known);
  return (servers ?? []).flatMap((server, index) =>
    server === undefined
      ? []
      : [
          ...serverFaults(['apiServers', index], server, draft),
          ...duplicateFaults(['apiServers', index], server, first.get(known[index]) ?? index, index),
          ...probeFaults(['apiServers', index, 'probe'], server.probe ?? {}),
        ],
  );
}

const NO_SERVERS = 'is empty: without an API server the kubernetes Service has no endpoints';

const SOURCES = ['address', 'host', 'targetGroupArn', 'serviceRef'] as const;

function serverFaults(at: SpecPath, server: ServerDraft, draft: SpecDraft): SpecFault[] {
  const { address, host, targetGroupArn, serviceRef, kind } = server;
  const given = SOURCES.filter((source) => source in server);
  if (given.length > 1) return [fault(at, `has both ${given.join(' and ')}`, 'write one of them in each entry')];
  if (address !== undefined) return addressFaults([...at, 'address'], address, draft);
  if (given.length === 0) {
    const fix = 'write address: 203.0.113.10 or host: api.example.com';
    return [fault(at, 'has neither an address, a host, a targetGroupArn nor a serviceRef', fix)];
  }
  return [
    ...(kind === 'server' ? [fault([...at, 'kind'], HOST_IS_SHARED, 'leave it out, or write shared')] : []),
    ...(host === undefined ? [] : hostFaults(at, host)),
    ...(targetGroupArn === undefined || TARGET_GROUP.test(targetGroupArn) ? [] : [notTargetGroup(at, targetGroupArn)]),
    ...(serviceRef === undefined ? [] : serviceRefFaults([...at, 'serviceRef'], serviceRef)),
  ];
}

function notTargetGroup(at: SpecPath, text: string): SpecFault {
  const fix = 'copy it from: aws elbv2 describe-target-groups';
  return fault([...at, 'targetGroupArn'], `${JSON.stringify(text)} is not the ARN of a target group`, fix);
}

function serviceRefFaults(at: SpecPath, serviceRef: NonNullable<ServerDraft['serviceRef']>): SpecFault[] {
  const names = (['namespace', 'name'] as const).flatMap((field) => {
    const text = serviceRef[field];
    if (text === undefined || isDnsLabel(text)) return [];
    return [fault([...at, field], `${JSON.stringify(text)} is not a valid name`, 'write that of the Service')];
  });
  return [...names, ...kubeconfigFaults([...at, 'kubeconfig'], serviceRef.kubeconfig)];
}

/** Checks that an address is accepted by the API in Endpoints, and of the family of the kubernetes Service. */
function addressFaults(at: SpecPath, text: string, draft: SpecDraft): SpecFault[] {
  const address = parseAddress(text);
  if (address === undefined) {
    const fix = isHostName(text)
      ? `for a host name write host: ${text}`
      : 'write an address such as 203.0.113.10 or 2001:db8::10';
    return [fault(at, `${JSON.stringify(text)} is not an IP address`, fix)];
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

/** Checks the family: the kubernetes Service has that of the primary range, or both; with `none` nothing is published. */
function familyFaults(at: SpecPath, text: string, address: Address, draft: SpecDraft): SpecFault[] {
  const reconciler = draft.endpoints?.reconciler;
  if (reconciler === undefined || reconciler === 'none' || draft.serviceClusterIPRange === undefined) return [];
  const { primary, secondary } = readServiceRanges(draft.serviceClusterIPRange);
  if (primary === undefined || primary.family === address.family) return [];
  if (draft.service?.ipFamilyPolicy === 'PreferDualStack' && secondary?.family === address.family) return [];
  const message = `service IP family "${primary.text}" must match public address family "${canonicalAddress(text)}"`;
  return [
    fault(
      at,
      message,
      secondary === undefined
        ? `write an ${primary.family} address, or put a range of ${address.family} first in serviceClusterIPRange`
        : `write an ${primary.family} address, or set service.ipFamilyPolicy to PreferDualStack`,
    ),
  ];
}

function hostFaults(at: SpecPath, host: string): SpecFault[] {
  if (parseAddress(host) !== undefined) {
    return [fault([...at, 'host'], `${host} is an address`, `write address: ${host}`)];
  }
  if (isHostName(host)) return [];
  const fix = 'write a DNS name such as api.example.com, without scheme and port';
  return [fault([...at, 'host'], `${JSON.stringify(host)} is not a valid host name`, fix)];
}

const HOST_IS_SHARED = 'an entry without an address is always shared: its addresses change';

function duplicateFaults(at: SpecPath, server: ServerDraft, first: number, index: number): SpecFault[] {
  if (nameOfEntry(server) === undefined || first === index) return [];
  const field = SOURCES.find((source) => source in server) ?? 'address';
  return [fault([...at, field], `apiServers[${first}] is the same`, 'list each API server once')];
}

function probeFaults(at: SpecPath, probe: NonNullable<ServerDraft['probe']>): SpecFault[] {
  const { url, path, authenticate } = probe;
  const faults: SpecFault[] = [];
  if (path !== undefined && !/^\/[^\s#]*$/.test(path)) {
    faults.push(fault([...at, 'path'], `${JSON.stringify(path)} is not a path`, 'write a path such as /readyz'));
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
    return [fault(at, `${JSON.stringify(text)} is not an http or https URL`, fix)];
  }
  if (url.username !== '' || url.password !== '') {
    const fix = 'remove it; probe.authenticate sends that of the kubeconfig';
    return [fault(at, 'contains a credential, which would be stored and logged', fix)];
  }
  if (!authenticate || url.protocol === 'https:') return [];
  const message = 'would send the credential of probe.authenticate unencrypted';
  return [fault(at, message, 'write an https URL, or leave out probe.authenticate')];
}
