import type { Finding } from '../cluster/finding.ts';
import { isWithdrawn, type Lease } from '../cluster/lease.ts';
import { oddProbes } from '../endpoints/endpoint-findings.ts';
import { decideLeases, type LeaseChange } from '../endpoints/lease-decisions.ts';
import type { ProbeOutcome } from '../endpoints/probe-outcome.ts';
import type { ExpectedAddress } from '../endpoints/published-addresses.ts';
import { type ListedLease, listLeases, putLease, removeLease } from '../table/leases.ts';
import type { PassContext } from './pass.ts';
import { probeAddresses, resolveAddresses } from './probe-addresses.ts';

export interface LeasesRefreshed {
  readonly expected: readonly ExpectedAddress[];
  readonly outcomes: ReadonlyMap<string, ProbeOutcome>;
  /** Leases taken, dropped, given back or removed. A refresh, and a miss, are not told. */
  readonly changes: readonly string[];
  readonly findings: readonly Finding[];
}

/**
 * Looks at every API server and writes what was seen into its lease, each write conditional on the lease that was
 * listed before the probes: whoever wrote meanwhile, a deregistration above all, wins.
 */
export async function refreshLeases(context: PassContext): Promise<LeasesRefreshed> {
  const { spec, table, firstPass, nowMs } = context;
  const listed = await listLeases(table, spec.name);
  const leases = listed.map(({ lease }) => lease);
  const { addresses: expected, findings } = await resolveAddresses(spec, context.resolveHost, leases);
  const outcomes = await probeAddresses(expected, leases, context.probe);
  const hosts = spec.apiServers.flatMap((server) => ('host' in server ? server.host : []));
  const leaseMs = spec.endpoints.leaseSeconds * 1000;
  const observedAtMs = nowMs();
  const decided = decideLeases({ leases, expected, outcomes, hosts, nowMs: observedAtMs, leaseMs, firstPass });
  const told = await Promise.all(
    decided.map(async (change) => {
      const before = listed.find(({ lease }) => lease.address === change.lease.address);
      const won = await applyChange(context, change, before);
      return won ? describeChange(change, before?.lease, outcomes.get(change.lease.address), observedAtMs) : undefined;
    }),
  );
  const changes = told.filter((line) => line !== undefined);
  return { expected, outcomes, changes, findings: [...findings, ...oddProbes(outcomes)] };
}

async function applyChange(
  { table, spec }: PassContext,
  change: LeaseChange,
  before: ListedLease | undefined,
): Promise<boolean> {
  if (change.verb === 'put') return (await putLease(table, spec.name, change.lease, before)).outcome === 'won';
  return before !== undefined && (await removeLease(table, before)).outcome === 'won';
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
