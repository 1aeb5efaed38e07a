import {
  type ProbedAddress,
  probeAddresses,
  RECORDS_OF_A_HOST,
  resolveAddresses,
} from '../api-servers/probe-addresses.ts';
import type { Finding } from '../cluster/finding.ts';
import { isHeld, isKeptByAgent, isWithdrawn, type Lease } from '../cluster/lease.ts';
import { probeFindings } from '../endpoints/endpoint-findings.ts';
import { decideLeases, isAnyAnswered, type LeaseChange, rememberedLease } from '../endpoints/lease-decisions.ts';
import type { ProbeOutcome } from '../endpoints/probe-outcome.ts';
import type { ExpectedAddress } from '../endpoints/published-addresses.ts';
import type { HostResolver } from '../kubernetes/cluster-port.ts';
import type { Item, WriteResult } from '../table/key-value-table.ts';
import { type ListedLease, listLeases, putLease, removeLease } from '../table/leases.ts';
import type { PassContext } from './pass.ts';

/** Of the 9 s of a pass. A silent probe takes 3 s. */
const LOOK_UPS_MS = 2_000;
const PROBES_MS = 3_500;

interface LeasesRefreshed {
  readonly expected: readonly ExpectedAddress[];
  readonly outcomes: ReadonlyMap<string, ProbeOutcome>;
  /** Leases taken, dropped, taken again or removed. A refresh, and a miss, are not reported. */
  readonly changes: readonly string[];
  readonly findings: readonly Finding[];
  /** Host names whose look-up failed. */
  readonly unresolved: readonly string[];
  readonly unwritten: readonly UnwrittenLease[];
}

/** A lease whose write did not win, and the item that it was to replace. */
interface UnwrittenLease {
  readonly lease: Lease;
  readonly replaced: Item;
}

export interface LeasesObserved extends Omit<LeasesRefreshed, 'unresolved' | 'unwritten'> {
  /** As they are after the probes. */
  readonly leases: readonly Lease[];
}

/**
 * Probes every API server and writes the outcome into its lease, each write conditional on the lease that was listed before
 * the probes: another writer, such as a deregistration, wins.
 */
export async function refreshLeases(context: PassContext): Promise<LeasesRefreshed> {
  const { spec, table, nowMs } = context;
  const listed = await listLeases(table, spec.name);
  const leases = listed.map(({ lease }) => lease);
  const { addresses: expected, findings, unresolved, outcomes } = await resolveAndProbe(context, leases);
  const hosts = spec.apiServers.flatMap((server) => ('host' in server ? server.host : []));
  const leaseMs = spec.endpoints.leaseSeconds * 1000;
  const intervalMs = spec.intervalSeconds['kubernetes-service'] * 1000;
  const observedAtMs = nowMs();
  const decided = decideLeases({ leases, expected, outcomes, hosts, nowMs: observedAtMs, leaseMs, intervalMs });
  const applied = await Promise.all(
    decided.map(async (change) => {
      const before = listed.find(({ lease }) => lease.address === change.lease.address);
      return { change, before, result: await applyChange(context, change, before) };
    }),
  );
  return {
    expected,
    outcomes,
    changes: applied.flatMap(({ change, before, result }) => {
      const outcome = outcomes.get(change.lease.address);
      return isWritten(result) ? (describeChange(change, before?.lease, outcome, observedAtMs) ?? []) : [];
    }),
    findings: [...findings, ...probeFindings(outcomes)],
    unresolved,
    unwritten: applied.flatMap(({ change, before, result }) =>
      result?.outcome === 'won' || change.verb === 'delete' || before === undefined
        ? []
        : { lease: change.lease, replaced: before.item },
    ),
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
  { probe, nowMs }: PassContext,
  expected: readonly ProbedAddress[],
  leases: readonly Lease[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ProbeOutcome>> {
  const kept = new Set(leases.filter((lease) => isKeptByAgent(lease, nowMs())).map(({ address }) => address));
  const outcomes = await probeAddresses(
    expected.filter(({ address }) => !kept.has(address)),
    probe,
    signal,
  );
  if (outcomes.size === 0 || isAnyAnswered(outcomes)) return outcomes;
  const witnesses = await probeAddresses(
    expected.filter(({ address }) => kept.has(address)),
    probe,
    signal,
  );
  return new Map([...outcomes, ...witnesses]);
}

/**
 * Lists the leases again: an address may have been deregistered during the probes. An address that is published without a
 * lease gets one, so that neither one lost probe nor one lost write removes it. Where a look-up failed, the address may be
 * of that host.
 */
export async function listAfterProbes(
  { spec, table, nowMs }: PassContext,
  { expected, outcomes, unresolved, unwritten, ...rest }: LeasesRefreshed,
  published: readonly string[],
): Promise<LeasesObserved> {
  const seen = unwritten.filter(({ lease }) => published.includes(lease.address));
  const list = async () => withUnwritten(await listLeases(table, spec.name), seen, nowMs());
  const leases = await list();
  const unleased = published.filter((address) => !leases.some((lease) => lease.address === address));
  const known = expected.filter(({ address }) => unleased.includes(address));
  const unknown = unleased.filter((address) => !expected.some((other) => other.address === address));
  const ofHost = unresolved
    .slice(0, 1)
    .flatMap((host) =>
      unknown.slice(0, RECORDS_OF_A_HOST).map((address): ExpectedAddress => ({ address, kind: 'shared', host })),
    );
  const found = [...known, ...ofHost];
  const remembered = await Promise.all(
    found.map(async (address) => {
      const lease = rememberedLease(address, { outcomes, nowMs: nowMs() });
      if (lease === undefined || !isWritten(await putLease(table, spec.name, lease, undefined))) return [];
      return [`remembered ${lease.address}, which is published: ${lease.lastProbe ?? 'it was not probed'}`];
    }),
  );
  return {
    ...rest,
    expected: [...expected, ...ofHost],
    outcomes,
    changes: [...rest.changes, ...remembered.flat()],
    leases: found.length === 0 ? leases : await list(),
  };
}

/**
 * A lost write removes no address that answered: a restored table may have an old withdrawal or old misses of it. The write
 * of another writer wins, and so does a withdrawal that is not over.
 */
function withUnwritten(listed: readonly ListedLease[], unwritten: readonly UnwrittenLease[], nowMs: number): Lease[] {
  return listed.map(({ lease, item }) => {
    const seen = unwritten.find(({ replaced }) => replaced.key === item.key && replaced.writeId === item.writeId);
    return seen !== undefined && isHeld(seen.lease, nowMs) && !isWithdrawn(lease, nowMs) ? seen.lease : lease;
  });
}

async function applyChange(
  { table, spec }: PassContext,
  change: LeaseChange,
  before: ListedLease | undefined,
): Promise<WriteResult<unknown> | undefined> {
  if (change.verb === 'put') return putLease(table, spec.name, change.lease, before);
  return before && removeLease(table, before);
}

function isWritten(result: WriteResult<unknown> | undefined): boolean {
  return result?.outcome === 'won' && result.withheld !== true;
}

function describeChange(
  { verb, lease }: LeaseChange,
  before: Lease | undefined,
  outcome: ProbeOutcome | undefined,
  nowMs: number,
): string | undefined {
  const detail = outcome === undefined ? 'not in the spec' : outcome.detail;
  if (verb === 'delete') return `removed lease ${lease.address}: ${detail}`;
  if (before === undefined) return `took lease ${lease.address}: ${detail}`;
  const wasOut = isWithdrawn(before, nowMs) || before.expiresAtMs <= nowMs;
  const isOut = isWithdrawn(lease, nowMs) || lease.expiresAtMs <= nowMs;
  if (wasOut === isOut) return undefined;
  return isOut ? `dropped lease ${lease.address}: ${detail}` : `took lease ${lease.address} again: ${detail}`;
}
