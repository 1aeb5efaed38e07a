import {
  inTurn,
  PROBES_AT_ONCE,
  type ProbedAddress,
  probeAddresses,
  RECORDS_OF_A_HOST,
  resolveAddresses,
  ticksOfATurn,
} from '../api-servers/probe-addresses.ts';
import type { Finding } from '../cluster/finding.ts';
import { isActive, isKeptByAgent, isWithdrawn, type Lease, type LeaseChanges } from '../cluster/lease.ts';
import { probeFindings } from '../endpoints/endpoint-findings.ts';
import { decideLeases, isAnyAnswered, rememberedLease } from '../endpoints/lease-decisions.ts';
import type { ProbeOutcome } from '../endpoints/probe-outcome.ts';
import type { ExpectedAddress } from '../endpoints/published-addresses.ts';
import type { HostResolver } from '../kubernetes/cluster-port.ts';
import { changeLeases, isSameLease, leaseOf, readLeases, type StoredLeases } from '../table/leases.ts';
import type { PassContext } from './pass.ts';

/** Of the 9 s of a pass. A silent probe takes 3 s, and 1 s more where this process was busy. */
const LOOK_UPS_MS = 2_000;
const PROBES_MS = 4_000;
const WITNESSES_AT_ONCE = 2;

export interface LeasesRefreshed {
  /** What the table has, as far as this pass knows. */
  readonly stored: StoredLeases;
  readonly expected: readonly ExpectedAddress[];
  readonly outcomes: ReadonlyMap<string, ProbeOutcome>;
  /** Leases taken, dropped, taken again or removed. A refresh, and a miss, are not reported. */
  readonly changes: readonly string[];
  readonly findings: readonly Finding[];
  /** Host names whose look-up failed. */
  readonly unresolved: readonly string[];
  /** What was decided about the leases as they were before. Some may not have been written. */
  readonly decided: LeaseChanges;
  readonly before: StoredLeases;
}

export interface LeasesObserved extends LeasesRefreshed {
  readonly leases: readonly Lease[];
}

/**
 * Probes every API server and writes the outcomes into the leases, each on the condition that the lease is the one that was
 * read before the probes: another writer, such as a deregistration, wins.
 */
export async function refreshLeases(context: PassContext): Promise<LeasesRefreshed> {
  const { spec, table, nowMs, triesEveryMs } = context;
  const before = await readLeases(table, spec.name);
  const { leases } = before;
  const { addresses: expected, findings, unresolved, outcomes } = await resolveAndProbe(context, leases);
  const hosts = spec.apiServers.flatMap((server) => ('host' in server ? server.host : []));
  const leaseMs = spec.endpoints.leaseSeconds * 1000;
  const intervalMs = spec.intervalSeconds['kubernetes-service'] * 1000;
  const observedAtMs = nowMs();
  const triedEveryMs = triesEveryMs * ticksOfATurn(expected.length);
  const times = { nowMs: observedAtMs, leaseMs, intervalMs, triesEveryMs: triedEveryMs };
  const decided = decideLeases({ leases, expected, outcomes, hosts, ...times });
  const { written, present } = await changeLeases(table, spec.name, before, decided);
  const describe = (address: string) =>
    describeChange(
      { address, before: leaseOf(before, address), after: decided.get(address) },
      outcomes.get(address),
      observedAtMs,
    ) ?? [];
  return {
    stored: present,
    expected,
    outcomes,
    changes: [...written].flatMap(describe),
    findings: [...findings, ...probeFindings(outcomes)],
    unresolved,
    decided,
    before,
  };
}

/** Look-ups and probes share a budget that leaves time for the reads and writes of the pass. */
async function resolveAndProbe(context: PassContext, leases: readonly Lease[]) {
  const all = context.startBudget(LOOK_UPS_MS + PROBES_MS);
  const lookUps = context.startBudget(LOOK_UPS_MS);
  try {
    const resolveHost: HostResolver = (host) => context.resolveHost(host, lookUps.signal);
    const resolved = await resolveAddresses(context.spec, resolveHost, leases);
    return { ...resolved, outcomes: await probeWithWitnesses(context, resolved.addresses, leases, all.signal) };
  } finally {
    all.cancel();
    lookUps.cancel();
  }
}

/** Probes the server of an agent only as a witness: whether the silence of all others is theirs, or our own network's. */
async function probeWithWitnesses(
  { spec, probe, passId, nowMs }: PassContext,
  expected: readonly ProbedAddress[],
  leases: readonly Lease[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ProbeOutcome>> {
  const kept = new Set(leases.filter((lease) => isKeptByAgent(lease, nowMs())).map(({ address }) => address));
  const toProbe = expected.filter(({ address }) => !kept.has(address));
  const turn = { passId, nowMs: nowMs(), leaseMs: spec.endpoints.leaseSeconds * 1000 };
  const witnesses = expected.filter(({ address }) => kept.has(address));
  // The silence of so many would use up the time for the witnesses.
  const atOnce = toProbe.length < PROBES_AT_ONCE ? [] : witnesses.slice(0, WITNESSES_AT_ONCE);
  const outcomes = await probeAddresses([...atOnce, ...inTurn(toProbe, leases, turn)], probe, signal);
  if (outcomes.size === 0 || isAnyAnswered(outcomes)) return outcomes;
  return new Map([...outcomes, ...(await probeAddresses(witnesses.slice(atOnce.length), probe, signal))]);
}

/**
 * Returns the leases by which the pass decides. An address that is published without a lease gets one, so that neither one
 * lost probe nor one lost write removes it. Where a look-up failed, the address may be of that host.
 */
export async function observeLeases(
  { spec, table, nowMs }: PassContext,
  refreshed: LeasesRefreshed,
  published: readonly string[],
): Promise<LeasesObserved> {
  const { stored, expected, outcomes, unresolved } = refreshed;
  const unleased = published.filter((address) => leaseOf(stored, address) === undefined);
  const isUnleased = new Set(unleased);
  const isExpected = new Set(expected.map(({ address }) => address));
  const known = expected.filter(({ address }) => isUnleased.has(address));
  const unknown = unleased.filter((address) => !isExpected.has(address));
  const ofHost = unresolved
    .slice(0, 1)
    .flatMap((host) =>
      unknown.slice(0, RECORDS_OF_A_HOST).map((address): ExpectedAddress => ({ address, kind: 'shared', host })),
    );
  const remembered = [...known, ...ofHost].flatMap(
    (address) => rememberedLease(address, { outcomes, nowMs: nowMs() }) ?? [],
  );
  const changes = new Map(remembered.map((lease) => [lease.address, lease]));
  const { written, present } = await changeLeases(table, spec.name, stored, changes);
  const lines = remembered
    .filter(({ address }) => written.has(address))
    .map(({ address, lastProbe = 'it was not probed' }) => `remembered ${address}, which is published: ${lastProbe}`);
  return {
    ...refreshed,
    stored: present,
    expected: [...expected, ...ofHost],
    changes: [...refreshed.changes, ...lines],
    unresolved: [],
    leases: withUnwritten(present.leases, refreshed, published, nowMs()),
  };
}

/**
 * Reads the leases again, before anything is done by them: an address may have been deregistered since they were written.
 */
export async function observeLeasesAgain(
  context: PassContext,
  observed: LeasesObserved,
  published: readonly string[],
): Promise<LeasesObserved> {
  const stored = await readLeases(context.table, context.spec.name);
  return observeLeases(context, { ...observed, stored }, published);
}

/**
 * A lost write removes no address that answered: a restored table may have an old withdrawal or old misses of it. The write
 * of another writer wins, and so does a withdrawal that is not over.
 */
function withUnwritten(
  leases: readonly Lease[],
  { before, decided }: LeasesRefreshed,
  published: readonly string[],
  nowMs: number,
): Lease[] {
  const isPublished = new Set(published);
  return leases.map((lease) => {
    const { address } = lease;
    const seen = decided.get(address);
    const isUnwritten = isPublished.has(address) && isSameLease(leaseOf(before, address), lease);
    return isUnwritten && seen !== undefined && isActive(seen, nowMs) && !isWithdrawn(lease, nowMs) ? seen : lease;
  });
}

interface DescribedChange {
  readonly address: string;
  readonly before: Lease | undefined;
  readonly after: Lease | undefined;
}

function describeChange(
  { address, before, after }: DescribedChange,
  outcome: ProbeOutcome | undefined,
  nowMs: number,
): string | undefined {
  const detail = outcome === undefined ? 'not in the spec' : outcome.detail;
  if (after === undefined) return `removed lease ${address}: ${detail}`;
  if (before === undefined) return `took lease ${address}: ${detail}`;
  const wasOut = isWithdrawn(before, nowMs) || before.expiresAtMs <= nowMs;
  const isOut = isWithdrawn(after, nowMs) || after.expiresAtMs <= nowMs;
  if (wasOut === isOut) return undefined;
  return isOut ? `dropped lease ${address}: ${detail}` : `took lease ${address} again: ${detail}`;
}
