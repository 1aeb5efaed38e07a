import { hash } from 'node:crypto';
import { type Address, familyOf, formatAddress, parseAddress } from '../allocator/ip-address.ts';
import { isGlobalUnicast } from '../allocator/network.ts';
import type { Finding } from '../cluster/finding.ts';
import { type PublishedFamily, publishedFamilies } from '../cluster/published-objects.ts';
import { type ExpectedAddress, publishedAddresses, type ServersSeen } from '../endpoints/published-servers.ts';
import { ClusterError, type LookUp, type Prober, type ProbeTarget } from '../kubernetes/cluster-port.ts';
import { isKeptByAgent, type Lease } from '../leases/lease.ts';
import { hasMissedTwice } from '../leases/lease-states.ts';
import { isAnyAnswered, outcomesOf, type ProbeOutcome, probeOutcome } from '../leases/probe-outcome.ts';
import {
  type ApiServerSpec,
  type ClusterSpec,
  isDnsName,
  type ProbeSpec,
  type SharedHostSpec,
} from '../spec/cluster-spec.ts';
import { serviceRangeOf } from '../spec/spec-parts.ts';
import { eachOf } from '../util/async.ts';
import { MOST_RECORDS, RECORDS_OF_A_HOST } from '../util/bounds.ts';
import { hostOf } from '../util/hosts.ts';
import { boundedText } from '../util/values.ts';

/** The maximum number of probes that a pass sends at the same time. With up to 16 passes, an invocation sends at most 256. */
const PROBES_AT_ONCE = 16;
const WITNESSES_AT_ONCE = 2;
/** The time for look-ups. Look-ups and probes (`PROBES_MS`) leave 3 s of the 9 s of a pass for reads and writes. */
const LOOK_UPS_MS = 2_000;
const PROBES_MS = 4_000;

export interface ProbedAddress extends ExpectedAddress {
  readonly target: ProbeTarget;
}

interface ResolvedServer {
  readonly addresses: readonly ProbedAddress[];
  readonly findings: readonly Finding[];
  /** The sources of addresses, such as host names, whose look-up failed. */
  readonly unresolved: readonly string[];
}

export interface ResolvedAddresses extends ResolvedServer {
  readonly families: ReturnType<typeof publishedFamilies>;
}

export interface ProbingPass {
  readonly spec: ClusterSpec;
  readonly probe: Prober;
  readonly lookUp: LookUp;
  readonly passId: string;
  readonly nowMs: () => number;
  /** Starts a deadline. The caller must cancel it after use; otherwise its timer keeps the process running until the deadline. */
  readonly startDeadline: (ms: number) => { readonly signal: AbortSignal; readonly cancel: () => void };
}

/** Resolves and probes all API servers. The deadlines leave enough time for the reads and writes of the pass. */
export async function probeServers(
  pass: ProbingPass,
  leases: readonly Lease[],
): Promise<ResolvedAddresses & Pick<ServersSeen, 'outcomes'>> {
  const all = pass.startDeadline(LOOK_UPS_MS + PROBES_MS);
  const lookUps = pass.startDeadline(LOOK_UPS_MS);
  try {
    const lookUp = (source: SharedHostSpec) => pass.lookUp(source, lookUps.signal);
    const resolved = await resolveAddresses(pass.spec, lookUp, leases);
    return { ...resolved, outcomes: await probeWithWitnesses(pass, resolved, leases, all.signal) };
  } finally {
    all.cancel();
    lookUps.cancel();
  }
}

/** Probes servers that have no agent. If a family is silent, also probes its servers that have agents, to test our network. */
async function probeWithWitnesses(
  { spec, probe, passId, nowMs }: ProbingPass,
  { addresses: expected, families }: ResolvedAddresses,
  leases: readonly Lease[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ProbeOutcome>> {
  const kept = new Set(leases.filter((lease) => isKeptByAgent(lease, nowMs())).map(({ address }) => address));
  const toProbe = expected.filter(({ address }) => !kept.has(address));
  const turn = { passId, nowMs: nowMs(), leaseMs: spec.endpoints.leaseSeconds * 1000 };
  const witnesses = expected.filter(({ address }) => kept.has(address));
  // Many silent addresses would leave no time to probe witnesses afterwards, so a few witnesses are probed first.
  const firstOf = ({ isOf }: PublishedFamily) =>
    witnesses.filter(({ address }) => isOf(address)).slice(0, WITNESSES_AT_ONCE / families.length);
  const atOnce = toProbe.length < PROBES_AT_ONCE ? [] : families.flatMap(firstOf);
  const outcomes = await probeAddresses([...atOnce, ...inTurn(toProbe, leases, turn)], probe, signal);
  const silent = families.filter(({ isOf }) => {
    const ofFamily = outcomesOf(outcomes, isOf);
    return ofFamily.size > 0 && !isAnyAnswered(ofFamily);
  });
  const needed = witnesses.filter(({ address }) => !outcomes.has(address) && silent.some(({ isOf }) => isOf(address)));
  return withoutStarting(expected, new Map([...outcomes, ...(await probeAddresses(needed, probe, signal))]));
}

/** If one server accepts the credential, turns refusals by others into `unknown`: these may still be loading their roles. */
function withoutStarting(
  expected: readonly ProbedAddress[],
  outcomes: ReadonlyMap<string, ProbeOutcome>,
): ReadonlyMap<string, ProbeOutcome> {
  const withCredential = new Set(
    expected.flatMap(({ address, target }) => (target.authenticate === true ? address : [])),
  );
  const entries = [...outcomes];
  if (!entries.some(([address, { verdict }]) => verdict === 'ready' && withCredential.has(address))) return outcomes;
  return new Map(
    entries.map(([address, outcome]) => {
      if (!outcome.refused || !withCredential.has(address)) return [address, outcome];
      const detail = `${outcome.detail} to a credential that another accepts`;
      return [address, { ...outcome, verdict: 'unknown', detail }];
    }),
  );
}

/** Returns the addresses of the spec and of its sources, such as host names. If a look-up fails, addresses with leases stay. */
export async function resolveAddresses(
  spec: ClusterSpec,
  lookUp: (source: SharedHostSpec) => ReturnType<LookUp>,
  leases: readonly Lease[],
): Promise<ResolvedAddresses> {
  const families = publishedFamilies(spec);
  const resolved = await Promise.all(spec.apiServers.map((server) => resolveServer(server, spec, lookUp, leases)));
  const byAddress = new Map<string, ProbedAddress>();
  const named = resolved
    .flatMap(({ addresses }) => addresses)
    .sort((one, other) => Number('host' in one) - Number('host' in other));
  for (const address of named) if (!byAddress.has(address.address)) byAddress.set(address.address, address);
  return {
    families,
    addresses: [...byAddress.values()],
    findings: resolved.flatMap(({ findings }) => findings),
    unresolved: resolved.flatMap(({ unresolved }) => unresolved),
  };
}

async function resolveServer(
  server: ApiServerSpec,
  spec: ClusterSpec,
  lookUp: (source: SharedHostSpec) => ReturnType<LookUp>,
  leases: readonly Lease[],
): Promise<ResolvedServer> {
  if ('address' in server) {
    const { address, kind } = server;
    const isOneServer = kind === 'server' && server.probe.url === undefined;
    const target = { ...targetOf(address, server.probe, spec), ...(isOneServer && { isOneServer }) };
    return { addresses: [{ address, kind, target }], findings: [], unresolved: [] };
  }
  const { host } = server;
  const probe = isDnsName(server) ? { ...server.probe, serverName: server.probe.serverName ?? host } : server.probe;
  const probed = (addresses: readonly string[]): ProbedAddress[] =>
    addresses.map((address) => ({ address, kind: 'shared', host, target: targetOf(address, probe, spec) }));
  const found = await lookUp(server).catch((error: unknown) => {
    return { addresses: [], unread: error instanceof ClusterError ? error.message : '' };
  });
  const { addresses: records, unread } = found ?? { addresses: [], unread: '' };
  const ofHost = leases.filter((lease) => lease.source === 'probe' && lease.host === host);
  const publishableOf = (texts: readonly unknown[]) => publishable(parsedRecords(texts), server, spec, ofHost);
  const whole = publishableOf(records);
  const names = Array.from(publishedFamilies(spec), ({ family }) => family).join(' or ');
  const unfit = `no record is an ${names} address that Endpoints may contain`;
  const why = unread ?? (whole.addresses.length > 0 ? undefined : unfit);
  if (why === undefined) return { addresses: probed(whole.addresses), findings: whole.findings, unresolved: [] };

  const known = ofHost.map(({ address }) => address);
  const { addresses, findings } = publishableOf([...known, ...records]);
  const cause = why === '' ? '' : ` (${why})`;
  const message = `the look-up of ${host} failed${cause}; its known addresses stay: ${known.join(' ') || 'nothing'}`;
  const failure: Finding = { type: 'other', message, item: host };
  return { addresses: probed(addresses), findings: [...findings, failure], unresolved: [host] };
}

/** Returns the records that may be published. If there are too many, the addresses of live servers have priority. */
function publishable(records: ParsedRecords, { host }: SharedHostSpec, spec: ClusterSpec, ofHost: readonly Lease[]) {
  const families = publishedFamilies(spec);
  const most = RECORDS_OF_A_HOST / families.length;
  const isFit = (address: Address | undefined) => address !== undefined && isGlobalUnicast(address);
  const findings: Finding[] = [];
  const report = (item: string, what: string) => {
    findings.push({ type: 'other', message: `${host} resolves to ${what}`, item });
  };
  for (const [record] of [...records].filter(([, address]) => !isFit(address)).slice(0, RECORDS_OF_A_HOST)) {
    report(record, `${record}, which Endpoints must not contain; correct its records or targets`);
  }
  const alive = new Set(ofHost.filter((lease) => !hasMissedTwice(lease)).map(({ address }) => address));
  const addresses = families.flatMap(({ family }) => {
    const fit = [...records]
      .flatMap(([record, address]) => (isFit(address) && address?.family === family ? [record] : []))
      .sort((one, other) => Number(alive.has(other)) - Number(alive.has(one)));
    if (fit.length > most) {
      report(host, `${fit.length} addresses; ${most} of them, live ones first, are probed and published`);
    }
    return fit.slice(0, most);
  });
  for (const item of addresses) {
    const address = records.get(item);
    const range = address && serviceRangeOf(address, spec.serviceClusterIPRanges);
    if (range === undefined) continue;
    const where = `in the range of cluster IPs ${range.text}, where clients may not reach it`;
    report(item, `${item} ${where}; correct its records or targets`);
  }
  return { addresses, findings };
}

/** Maps the canonical text of each record of a source to its address, or to `undefined` if the record is not an address. */
type ParsedRecords = ReadonlyMap<string, Address | undefined>;

function parsedRecords(found: readonly unknown[]): ParsedRecords {
  return new Map(
    found.slice(0, MOST_RECORDS).map((record) => {
      const text = boundedText(record);
      const address = parseAddress(text);
      return [address === undefined ? text : formatAddress(address), address];
    }),
  );
}

export function targetOf(address: string, probe: ProbeSpec, spec: ClusterSpec): ProbeTarget {
  const { url, path, authenticate, ...others } = probe;
  const authority = `${familyOf(address) === 'IPv6' ? `[${address}]` : address}:${spec.service.securePort}`;
  return {
    ...others,
    url: url ?? `https://${authority}${path}`,
    authenticate: authenticate && (url === undefined || isHostOf(spec, url) || 'atKubeconfigHost'),
  };
}

/** Returns whether the probe uses a port other than the published port. A different server might answer there. */
export function isOfOtherPort({ target }: ProbedAddress, { service }: ClusterSpec): boolean {
  const { port, protocol } = new URL(target.url);
  return Number(port || (protocol === 'https:' ? 443 : 80)) !== service.securePort;
}

/** Returns the target of the probe, such as `probed at https://10.0.0.1:6443/readyz`, with the published port if it differs. */
export function describeTarget(probed: ProbedAddress, spec: ClusterSpec): string {
  const port = isOfOtherPort(probed, spec) ? ` and published with port ${spec.service.securePort}` : '';
  return `probed at ${probed.target.url}${port}`;
}

/** Returns whether the URL's host is in the spec. A valid certificate is not enough: the cluster's CA also signs for nodes. */
export function isHostOf({ apiServers }: ClusterSpec, url: string): boolean {
  const host = hostOf(new URL(url));
  return apiServers.some((server) => ('address' in server ? server.address : server.host) === host);
}

/** Returns how many passes are necessary to probe all addresses if each pass probes only `PROBES_AT_ONCE` of them. */
export function ticksOfATurn(addresses: number): number {
  return Math.max(1, Math.ceil(addresses / PROBES_AT_ONCE));
}

/**
 * Returns the addresses in the order of their probes. Many silent addresses can use up the time of the pass, so published
 * addresses come first, beginning with the oldest refresh or miss. The other addresses are shuffled.
 */
function inTurn(
  addresses: readonly ProbedAddress[],
  leases: readonly Lease[],
  { passId, nowMs, leaseMs }: { readonly passId: string; readonly nowMs: number; readonly leaseMs: number },
): readonly ProbedAddress[] {
  if (addresses.length <= PROBES_AT_ONCE) return addresses;
  const published = new Set(publishedAddresses(leases, addresses, nowMs));
  const known = new Map(
    leases.map(({ address, expiresAtMs, missedAtMs = 0 }) => [address, Math.max(expiresAtMs - leaseMs, missedAtMs)]),
  );
  return addresses
    .map((probed) => ({
      probed,
      knownAtMs: published.has(probed.address) ? (known.get(probed.address) ?? 0) : Number.POSITIVE_INFINITY,
      lot: hash('sha256', `${passId} ${probed.address}`),
    }))
    .sort((one, other) => {
      if (one.knownAtMs !== other.knownAtMs) return one.knownAtMs < other.knownAtMs ? -1 : 1;
      return one.lot < other.lot ? -1 : 1;
    })
    .map(({ probed }) => probed);
}

/** Returns the outcome of each probe, in the order of `addresses`. Omits probes that had not started at the abort. */
export async function probeAddresses(
  addresses: readonly ProbedAddress[],
  probe: Prober,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ProbeOutcome>> {
  const outcomes = await eachOf(addresses, PROBES_AT_ONCE, async ({ address, target }) =>
    signal.aborted ? undefined : ([address, probeOutcome(await probe(target, signal))] as const),
  );
  return new Map(outcomes.filter((outcome) => outcome !== undefined));
}
