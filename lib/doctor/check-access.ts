import { parseAddress } from '../allocator/ip-address.ts';
import { isLoopback } from '../allocator/network.ts';
import {
  describeTarget,
  type ProbedAddress,
  probeAddresses,
  resolveAddresses,
  targetOf,
} from '../api-servers/probe-addresses.ts';
import { publishedFamilies } from '../cluster/published-objects.ts';
import {
  ClusterError,
  type ClusterPort,
  type HostResolver,
  type LookUp,
  type Prober,
} from '../kubernetes/cluster-port.ts';
import { type CredentialEnd, credentialEnds, endsSoon } from '../kubernetes/credentials.ts';
import type { ApiServerAccess } from '../kubernetes/kubeconfig.ts';
import {
  PERMISSION_GROUPS,
  type Permission,
  type PermissionGroup,
  permissionGroup,
  permissionText,
  type SelfReview,
  WEBHOOK,
} from '../kubernetes/permissions.ts';
import type { Lease } from '../leases/lease.ts';
import { hasAnswered, type ProbeOutcome } from '../leases/probe-outcome.ts';
import { HOLDS_SELECTOR } from '../range/hold-ip-address.ts';
import { hasFallBack } from '../runtime/pass-transport.ts';
import { type ClusterSpec, LOOPS, type Mode } from '../spec/cluster-spec.ts';
import { hostOf } from '../util/hosts.ts';
import { boundedText, isoTime } from '../util/values.ts';
import { type CheckResult, type DoctorLine, fail, ok, warn } from './line.ts';

export async function checkKubeconfig(access: ApiServerAccess, nowMs: number): CheckResult {
  const lines = [ok('kubeconfig', `read context ${access.context} of ${access.source}: ${access.server}`)];
  if (!access.tls().rejectUnauthorized) {
    const fix = 'Add certificate-authority-data, and remove insecure-skip-tls-verify';
    lines.push(warn('kubeconfig', 'it disables verification of the API server certificate', fix));
  }
  if (access.ignored.length > 0) {
    lines.push(ok('kubeconfig', `ignored unknown fields, as kubectl does: ${boundedText(access.ignored.join(', '))}`));
  }
  const ends = await credentialEnds(access);
  if (access.isIssuedForServer) lines.push(ok('token', 'AWS STS issues one, and a new one before it ends'));
  else if (ends.length === 0) lines.push(ok('token', 'the credential contains no expiry'));
  return [...lines, ...ends.map((end) => endLine(end, nowMs))];
}

/** If the kubeconfig leads to one of several API servers, warns of the loops that cannot run while that API server is down. */
export function checkServer(spec: ClusterSpec, access: ApiServerAccess): readonly DoctorLine[] {
  const { server } = access;
  const url = new URL(server);
  const apiServers = spec.apiServers.flatMap((one) => ('address' in one && one.kind === 'server' ? [one] : []));
  const isOne = apiServers.some(
    ({ address, probe }) => hostOf(url) === address || new URL(targetOf(address, probe, spec).url).host === url.host,
  );
  if (!isOne || apiServers.length < 2) return [];
  const still = LOOPS.filter((loop) => !hasFallBack(loop, spec, access));
  const message = `${server} is one of ${apiServers.length} API servers: while it is down, ${still.join(', ')} stand still`;
  const fix = 'Set the server of the kubeconfig to a load balancer of the API servers';
  if (!still.includes('kubernetes-service')) return [warn('kubeconfig', message, fix)];
  const fallBack = 'docs/cluster-spec.md#a-fall-back';
  return [warn('kubeconfig', `${message}, and it stays published`, `${fix}, or add a fall-back: ${fallBack}`)];
}

export function endLine(ending: CredentialEnd, nowMs: number): DoctorLine {
  const { what, endsMs } = ending;
  const fix = 'Renew it (docs/kubeconfig-secret.md): the functions read the new one within five minutes';
  const end = isoTime(endsMs);
  if (endsMs <= nowMs) return fail('token', `the ${what} ended at ${end}`, fix);
  if (endsSoon(ending, nowMs)) return warn('token', `the ${what} ends at ${end}`, fix);
  return ok('token', `the ${what} ends at ${end}`);
}

export async function checkName(access: ApiServerAccess, resolve: HostResolver): CheckResult {
  const host = hostOf(new URL(access.server));
  if (parseAddress(host) !== undefined) return [ok('dns', `${host} is an address: no name is looked up`)];
  const addresses = await resolve(host);
  if (addresses !== undefined) return [ok('dns', `${host} is ${addresses.join(' ')}`)];
  const fix = 'Correct the server in the kubeconfig, or its DNS records (in a VPC: associate the private hosted zone)';
  return [fail('dns', `${host} has no address here`, fix)];
}

/** Checks the version and the user. Any caller may read the version, so the version does not prove that the credential is valid. */
export async function checkApiServer({ server }: ApiServerAccess, review: SelfReview): CheckResult {
  const version = await review.version();
  const user = await review.user();
  const what = `${server} is Kubernetes ${version}, and`;
  if (user === 'system:anonymous') {
    const fix = 'Put a token or a client certificate of that cluster into the kubeconfig';
    return [fail('api server', `${what} has no user for the credential (${user})`, fix)];
  }
  const as = user === undefined ? '' : ` as that of ${user}`;
  return [ok('api server', `${what} accepts the credential${as}`)];
}

export async function checkWebhook({ allocator }: ClusterSpec, review: SelfReview): CheckResult {
  if (allocator !== 'table' || (await review.hasWebhook()) !== false) return [];
  const message = `allocator table, and MutatingWebhookConfiguration ${WEBHOOK} does not exist: stock API servers allocate beside the table`;
  const fix = 'Register it (docs/admission.md), or ignore this if the API servers allocate through the table';
  return [warn('service', message, fix)];
}

const APPLY = 'kubectl apply -f deploy/rbac.yaml, and use a token of its service account';
/** A permission that the user must not have, because it allows the user to redirect every Service of the cluster. */
const TOO_MUCH: Permission = { verb: 'update', group: '', resource: 'endpoints', namespace: 'kube-system' };
const ADD = 'Add them where the comments in deploy/rbac.yaml name this option, and apply it';

export async function checkRights(review: SelfReview, spec: ClusterSpec, server: string): CheckResult {
  const needed = [
    ...PERMISSION_GROUPS.map((group) => checkGroup(group, review, spec.mode, APPLY)),
    ...optionalGroups(spec).map((group) => checkGroup(group, review, spec.mode, ADD)),
  ];
  return [...(await Promise.all(needed)), ...(isOnThisMachine(server) ? [] : await checkExcess(review))];
}

/** Warns if an address is held and passes are not allowed to end its hold. */
export async function checkHolds(
  review: SelfReview,
  { allocator, repair }: ClusterSpec,
  kubernetes: Pick<ClusterPort, 'list'>,
): CheckResult {
  if (allocator !== 'apiserver' || repair.ipAddresses) return [];
  // Before Kubernetes 1.33 there are no IPAddresses. `checkRights` reports a missing right to list them.
  const held = await kubernetes.list('IPAddress', undefined, HOLDS_SELECTOR).catch((error: unknown) => {
    if (error instanceof ClusterError && (error.code === 'Rejected' || error.code === 'Forbidden')) return [];
    throw error;
  });
  const permission: Permission = { verb: 'delete', group: 'networking.k8s.io', resource: 'ipaddresses' };
  if (held.length === 0 || (await review.allows(permission))) return [];
  const message = `${held.length} addresses are held, and passes may not ${permissionText(permission)}: a hold that ends stays`;
  return [warn('rights', message, `${ADD}, or release them: kbctl release ip`)];
}

function optionalGroups(spec: ClusterSpec): PermissionGroup[] {
  const [, second] = spec.endpoints.reconciler === 'none' ? [] : publishedFamilies(spec);
  const groups: PermissionGroup[] = [];
  if (spec.repair.ipAddresses) {
    groups.push(permissionGroup('repair.ipAddresses', 'IPAddress', ['create', 'delete', 'patch']));
    groups.push(permissionGroup('repair.ipAddresses', 'ServiceCIDR', ['update kubernetes']));
  }
  if (spec.endpoints.prune) groups.push(permissionGroup('endpoints.prune', 'EndpointSlice', ['delete'], 'default'));
  if (second !== undefined) {
    const rights = ['delete', 'get', 'update'].map((verb) => `${verb} ${second.refs.EndpointSlice.name}`);
    groups.push(permissionGroup('service.ipFamilyPolicy', 'EndpointSlice', rights, 'default'));
  }
  return groups;
}

/** Returns whether the URL has a loopback address, such as that of a test cluster on the user's own machine. */
function isOnThisMachine(url: string): boolean {
  const address = parseAddress(hostOf(new URL(url)));
  return address !== undefined && isLoopback(address);
}

async function checkGroup(group: PermissionGroup, review: SelfReview, mode: Mode, fix: string): Promise<DoctorLine> {
  const { about, place, permissions } = group;
  const allowed = await Promise.all(permissions.map((permission) => review.allows(permission)));
  const missing = permissions.filter((_, index) => !allowed[index]);
  if (missing.length === 0) {
    const verbs = permissions.map(({ verb }) => verb).sort();
    return ok('rights', `${about}: may ${permissionText({ ...place, verb: verbs.join(', ') })}`);
  }
  const message = `${about}: may not ${missing.map(permissionText).join(', ')}`;
  const onlyObserved = mode === 'observe' && missing.every(({ verb }) => verb !== 'get' && verb !== 'list');
  return onlyObserved ? warn('rights', `${message}, which enforce needs`, fix) : fail('rights', message, fix);
}

async function checkExcess(review: SelfReview): CheckResult {
  if (!(await review.allows(TOO_MUCH))) return [];
  const message = `may ${permissionText(TOO_MUCH)}: this allows the credential to redirect any Service`;
  return [warn('rights', message, APPLY)];
}

/** Resolves and probes the API servers. There is no line for an address that was not probed before the signal aborted. */
export async function checkProbes(
  spec: ClusterSpec,
  leases: readonly Lease[],
  { probe, lookUp, signal }: { readonly probe: Prober; readonly lookUp: LookUp; readonly signal: AbortSignal },
): CheckResult {
  const { addresses, findings } = await resolveAddresses(spec, (source) => lookUp(source, signal), leases);
  const fix = 'Correct the records or targets, or this entry of apiServers';
  const names = findings.map(({ message }) => fail('dns', message, fix));
  const outcomes = await probeAddresses(addresses, probe, signal);
  const probed = addresses.flatMap((address) => {
    const outcome = outcomes.get(address.address);
    return outcome === undefined ? [] : [aboutAddress(address, outcome, spec)];
  });
  return [...names, ...probed];
}

function aboutAddress(probed: ProbedAddress, outcome: ProbeOutcome, spec: ClusterSpec): DoctorLine {
  const { verdict, detail, odd } = outcome;
  const { address } = probed;
  const message = `${address}, ${describeTarget(probed, spec)}, ${hasAnswered(outcome) ? '' : 'gave '}${detail}`;
  if (verdict === 'ready') return ok('probe', message);
  if (verdict === 'silence' && odd) return fail('probe', message, TLS_REMEDY);
  const report = verdict === 'error' || verdict === 'silence' ? fail : warn;
  return report('probe', message, REMEDIES[verdict]);
}

const TLS_REMEDY = 'Add its CA to the kubeconfig, or set probe.serverName to a name of its certificate';
const REMEDIES = {
  alive:
    'It counts as alive, not as ready. Set probe.authenticate: true, or allow anonymous requests to its probe path',
  shuttingDown: 'Wait until it has restarted',
  unknown: 'Run the doctor again',
  error: 'Check the API server, or correct probe.path or probe.url',
  silence:
    'Check that it runs, its firewall or security group, and the network path to it, or set probe.url to a reachable address',
} as const;
