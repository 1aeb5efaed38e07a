import { type Address, canonicalAddress, parseAddress } from '../../lib/allocator/ip-address.ts';
import {
  isLinkLocal,
  isLinkLocalMulticast,
  isLoopback,
  isMulticast,
  isUnspecified,
} from '../../lib/allocator/network.ts';
import { nameOfEntry, readServiceRanges, SOURCES, serviceRangeOf } from '../../lib/spec/spec-parts.ts';
import { isAudienceOfSts, isLocalHost, plainUrl } from '../../lib/util/hosts.ts';
import { firstIndexes } from '../../lib/util/values.ts';
import { isHostName } from './names.ts';
import type { Report, SpecPath } from './spec-fault.ts';
import type { ServerDraft, SpecDraft } from './spec-shape.ts';

export function checkApiServers(draft: SpecDraft, report: Report): void {
  const { apiServers: servers = [], endpoints } = draft;
  const isEmpty = draft.apiServers?.length === 0;
  if (isEmpty && endpoints?.reconciler !== undefined && endpoints.reconciler !== 'none') {
    const message = 'is empty: without an API server the kubernetes Service has no endpoints';
    report(['apiServers'], message, 'list the address or host of each, or set endpoints.reconciler to none');
  }
  const names = servers.map((server) => server && nameOfEntry(server));
  const first = firstIndexes(names);
  for (const [index, server] of servers.entries()) {
    if (server === undefined) continue;
    const at = ['apiServers', index];
    checkServer(at, server, draft, report);
    const same = first.get(names[index]);
    if (names[index] === undefined || same === index) continue;
    const field = SOURCES.find((source) => source in server) ?? 'address';
    report([...at, field], `apiServers[${same}] is the same`, 'list each API server once');
  }
}

function checkServer(at: SpecPath, server: ServerDraft, draft: SpecDraft, report: Report): void {
  const { address, host, serviceRef, kind } = server;
  const [source, ...others] = SOURCES.filter((each) => each in server);
  if (source === undefined) {
    const fix = 'write address: 203.0.113.10 or host: api.example.com';
    report(at, 'has neither an address, a host, a targetGroupArn nor a serviceRef', fix);
    return;
  }
  if (others.length > 0) {
    report(at, `has both ${[source, ...others].join(' and ')}`, 'write one of them in each entry');
    return;
  }
  if (source !== 'address' && kind === 'server') {
    const message = 'an entry without an address is always shared: its addresses change';
    report([...at, 'kind'], message, 'leave it out, or write shared');
  }
  if (address !== undefined) checkAddress([...at, 'address'], address, draft, report);
  if (host !== undefined) checkHost([...at, 'host'], host, report);
  checkKubeconfigField([...at, 'serviceRef', 'kubeconfig'], serviceRef?.kubeconfig, report);
  checkProbe([...at, 'probe'], server.probe ?? {}, report);
}

/** Checks that the API accepts an address in Endpoints, and that the kubernetes Service has the family of the address. */
function checkAddress(at: SpecPath, text: string, draft: SpecDraft, report: Report): void {
  const address = parseAddress(text);
  if (address === undefined) {
    const fix = isHostName(text)
      ? `for a host name write host: ${text}`
      : 'write an address such as 203.0.113.10 or 2001:db8::10';
    report(at, `${JSON.stringify(text)} is not an IP address`, fix);
    return;
  }
  const unfit = unfitForEndpoints(address, text);
  if (unfit === undefined) checkFamily(at, text, address, draft, report);
  else
    report(at, unfit, 'write the address that clients in the cluster reach; a probe may go elsewhere with probe.url');
}

/** Makes the checks of `ValidateNonSpecialIP` (`pkg/apis/core/validation/validation.go`), and refuses all multicast. */
export function unfitForEndpoints(address: Address, text: string): string | undefined {
  if (isUnspecified(address)) return `may not be unspecified (${text})`;
  if (isLoopback(address)) return 'may not be in the loopback range (127.0.0.0/8, ::1/128)';
  if (isLinkLocal(address)) return 'may not be in the link-local range (169.254.0.0/16, fe80::/10)';
  if (isLinkLocalMulticast(address)) return 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)';
  return isMulticast(address) ? 'may not be a multicast address' : undefined;
}

/** Checks that an address is no cluster IP, and has the family of the first range (with PreferDualStack, of either range). */
function checkFamily(at: SpecPath, text: string, address: Address, draft: SpecDraft, report: Report): void {
  const reconciler = draft.endpoints?.reconciler;
  if (reconciler === undefined || reconciler === 'none' || draft.serviceClusterIPRange === undefined) return;
  const { primary, secondary } = readServiceRanges(draft.serviceClusterIPRange);
  const inside = serviceRangeOf(address, draft.serviceClusterIPRange);
  if (inside !== undefined) {
    const fix = 'write the address of the API server, or correct serviceClusterIPRange';
    report(at, `is in the range of cluster IPs ${inside.text}, which endpoints must not be in`, fix);
    return;
  }
  if (primary === undefined || primary.family === address.family) return;
  if (draft.service?.ipFamilyPolicy === 'PreferDualStack' && secondary?.family === address.family) return;
  const other =
    secondary === undefined
      ? `put a range of ${address.family} first in serviceClusterIPRange`
      : 'set service.ipFamilyPolicy to PreferDualStack';
  report(
    at,
    `service IP family "${primary.text}" must match public address family "${canonicalAddress(text)}"`,
    `write an ${primary.family} address, or ${other}`,
  );
}

function checkHost(at: SpecPath, host: string, report: Report): void {
  if (parseAddress(host) !== undefined) {
    report(at, `${host} is an address`, `write address: ${host}`);
  } else if (!isHostName(host)) {
    const fix = 'write a DNS name such as api.example.com, without scheme and port';
    report(at, `${JSON.stringify(host)} is not a valid host name`, fix);
  }
}

function checkProbe(at: SpecPath, probe: NonNullable<ServerDraft['probe']>, report: Report): void {
  const { url, path, authenticate } = probe;
  if (url === undefined) return;
  if (path !== undefined) report([...at, 'path'], 'has no meaning beside probe.url', 'put the path into the url');
  checkUrl([...at, 'url'], url, authenticate === true, report);
}

function checkUrl(at: SpecPath, text: string, authenticate: boolean, report: Report): void {
  const { username, password } = URL.parse(text) ?? { username: '', password: '' };
  const url = plainUrl(text);
  if (username !== '' || password !== '') {
    const fix = 'remove it; probe.authenticate sends that of the kubeconfig';
    report(at, 'contains a credential, which would be stored and logged', fix);
  } else if (url === undefined) {
    const fix = 'write a whole URL such as https://10.0.0.10:6443/readyz';
    report(at, `${JSON.stringify(text)} is not an http or https URL`, fix);
  } else if (authenticate && url.protocol === 'http:') {
    const message = 'would send the credential of probe.authenticate unencrypted';
    report(at, message, 'write an https URL, or leave out probe.authenticate');
  }
}

const KUBECONFIG_SOURCES = ['file', 'secretsManager', 'ssm', 'webIdentity'] as const;

export function checkKubeconfigField(at: SpecPath, kubeconfig: SpecDraft['kubeconfig'], report: Report): void {
  if (kubeconfig === undefined) return;
  const found = KUBECONFIG_SOURCES.filter((source) => source in kubeconfig);
  const [source] = found;
  if (source === undefined) {
    const fix = 'write secretsManager: the name of a secret';
    report(at, 'has neither file, secretsManager, ssm nor webIdentity', fix);
  } else if (found.length > 1) {
    report(at, `has both ${found.join(' and ')}`, 'keep the one to read from');
  } else {
    const unused = { webIdentity: ['roleArn', 'context'], file: ['roleArn'], secretsManager: [], ssm: [] } as const;
    for (const field of unused[source].filter((each) => each in kubeconfig)) {
      report([...at, field], `has no meaning beside ${source}`, 'leave it out');
    }
    checkWebIdentity([...at, 'webIdentity'], kubeconfig, report);
  }
}

function checkWebIdentity(at: SpecPath, { webIdentity }: NonNullable<SpecDraft['kubeconfig']>, report: Report): void {
  const { server, certificateAuthorityData: ca } = webIdentity ?? {};
  const problem = server === undefined ? undefined : serverProblem(server);
  if (problem !== undefined) {
    report([...at, 'server'], `${JSON.stringify(server)} ${problem}`, 'write one such as https://203.0.113.10:6443');
  }
  if (ca !== undefined && !Buffer.from(ca, 'base64').includes('-----BEGIN CERTIFICATE-----')) {
    const fix = 'copy certificate-authority-data from: kubectl config view --raw --flatten';
    report([...at, 'certificateAuthorityData'], 'is not a PEM certificate in base64', fix);
  }
}

function serverProblem(server: string): string | undefined {
  const url = URL.parse(server);
  if (url === null) return 'is not an https URL of an API server';
  if (isAudienceOfSts(url)) return 'is AWS STS, where a token of this audience could be exchanged for credentials';
  const isLocal = isLocalHost(url) || /(^|\.)localhost\.?$/.test(url.hostname);
  return isLocal ? 'is a loopback, link-local or metadata address, which every machine has' : undefined;
}
