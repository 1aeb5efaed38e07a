import {
  inTurn,
  PROBES_AT_ONCE,
  type ProbedAddress,
  probeAddresses,
  resolveAddresses,
  ticksOfATurn,
} from '../api-servers/probe-addresses.ts';
import type { SharedHostSpec } from '../cluster/cluster-spec.ts';
import { isActive, isKeptByAgent, type Lease, type LeaseChanges } from '../cluster/lease.ts';
import { isRecord } from '../cluster/values.ts';
import { contestStateFrom } from '../endpoints/contested-writes.ts';
import { probeFindings } from '../endpoints/endpoint-findings.ts';
import { decideLeases, isAnyAnswered, outcomesOf } from '../endpoints/lease-decisions.ts';
import {
  ENDPOINTS_REF,
  type EndpointSliceObject,
  type EndpointsObject,
  KUBERNETES_SERVICE,
  type PublishedFamily,
  publishedFamilies,
  SERVICE_NAME_LABEL,
  SERVICE_REF,
  type ServiceObject,
} from '../endpoints/objects.ts';
import type { ProbeOutcome } from '../endpoints/probe-outcome.ts';
import type { ClusterPort } from '../kubernetes/cluster-port.ts';
import { changeLeases, isSameLease, leaseOf, readLeases } from '../table/leases.ts';
import type { World } from './endpoints-decide.ts';
import type { PassContext } from './pass.ts';

/** A part of the 9 s of a pass. A silent probe takes 3 s, and 1 s more if this process was busy. */
const LOOK_UPS_MS = 2_000;
const PROBES_MS = 4_000;
const WITNESSES_AT_ONCE = 2;

/**
 * Reads the input of the decision. Probes every API server and writes the outcomes into the leases, each on the condition that
 * the lease is the one that was read before the probes: another writer, such as a deregistration, wins. The leases are saved
 * before the cluster is read, because the cluster may not answer.
 */
export async function gather(context: PassContext): Promise<World> {
  const { spec, table, kubernetes, nowMs, triesEveryMs, previous } = context;
  const state = previous?.state;
  const families = publishedFamilies(spec);
  const before = await readLeases(table, spec.name);
  const { leases } = before;
  const { addresses: expected, findings, unresolved, outcomes } = await resolveAndProbe(context, families, leases);
  const observedAtMs = nowMs();
  const decided = decideLeases({
    ...{ spec, families, leases, expected, outcomes, nowMs: observedAtMs },
    triesEveryMs: triesEveryMs * ticksOfATurn(expected.length),
  });
  const { written, present: stored, unwritten } = await changeLeases(table, spec.name, before, decided);
  const lines = [...written].flatMap((address) => {
    const change = describeChange(leaseOf(before, address), decided.get(address), observedAtMs);
    const detail = outcomes.get(address)?.detail ?? 'not in the spec';
    return change === undefined ? [] : `${change.replace('lease', `lease ${address}`)}: ${detail}`;
  });
  const [service, endpoints, slices] = await Promise.all([
    kubernetes.get<ServiceObject>(SERVICE_REF),
    kubernetes.get<EndpointsObject>(ENDPOINTS_REF),
    readSlices(kubernetes, families),
  ]);
  const [first, ...others] = families;
  const sliceOf = ({ refs }: PublishedFamily) =>
    slices.find(({ metadata }) => metadata.name === refs.EndpointSlice.name);
  return {
    ...{ spec, stored, unwritten, expected, outcomes, unresolved, lines, service, slices },
    families: [
      { ...first, objects: { Endpoints: endpoints, EndpointSlice: sliceOf(first) } },
      ...others.map((family) => ({ ...family, objects: { EndpointSlice: sliceOf(family) } })),
    ],
    findings: [...findings, ...probeFindings(outcomes)],
    contest: contestStateFrom(state),
    slicesContest: contestStateFrom(isRecord(state) ? state['slices'] : undefined),
    nowMs: nowMs(),
  };
}

/** Reads the leases again, after the objects: an address may have been deregistered since they were written. */
export async function gatherAgain(context: PassContext, world: World, remembered: LeaseChanges): Promise<World> {
  const { table, spec, nowMs } = context;
  const { written } = await changeLeases(table, spec.name, world.stored, remembered);
  const lines = [...written].map((address) => {
    return `remembered ${address}, which is published: ${remembered.get(address)?.lastProbe ?? 'it was not probed'}`;
  });
  const stored = await readLeases(table, spec.name);
  const isSame = (address: string) => isSameLease(leaseOf(world.stored, address), leaseOf(stored, address));
  const unwritten = new Map([...world.unwritten].filter(([address]) => isSame(address)));
  return { ...world, stored, unwritten, lines: [...world.lines, ...lines], nowMs: nowMs() };
}

/** Look-ups and probes share a budget that leaves time for the reads and writes of the pass. */
async function resolveAndProbe(context: PassContext, families: readonly PublishedFamily[], leases: readonly Lease[]) {
  const all = context.startDeadline(LOOK_UPS_MS + PROBES_MS);
  const lookUps = context.startDeadline(LOOK_UPS_MS);
  try {
    const lookUp = (source: SharedHostSpec) => context.lookUp(source, lookUps.signal);
    const resolved = await resolveAddresses(context.spec, lookUp, leases);
    return {
      ...resolved,
      outcomes: await probeWithWitnesses(context, families, resolved.addresses, leases, all.signal),
    };
  } finally {
    all.cancel();
    lookUps.cancel();
  }
}

/** Also probes servers of agents, to tell silent servers from a fault of our own network if no other server answers. */
async function probeWithWitnesses(
  { spec, probe, passId, nowMs }: PassContext,
  families: readonly PublishedFamily[],
  expected: readonly ProbedAddress[],
  leases: readonly Lease[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ProbeOutcome>> {
  const kept = new Set(leases.filter((lease) => isKeptByAgent(lease, nowMs())).map(({ address }) => address));
  const toProbe = expected.filter(({ address }) => !kept.has(address));
  const turn = { passId, nowMs: nowMs(), leaseMs: spec.endpoints.leaseSeconds * 1000 };
  const witnesses = expected.filter(({ address }) => kept.has(address));
  // Many silent addresses would use up the time for the witnesses.
  const atOnce = toProbe.length < PROBES_AT_ONCE ? [] : witnesses.slice(0, WITNESSES_AT_ONCE);
  const outcomes = await probeAddresses([...atOnce, ...inTurn(toProbe, leases, turn)], probe, signal);
  const silent = families.filter(({ isOf }) => {
    const ofFamily = outcomesOf(outcomes, isOf);
    return ofFamily.size > 0 && !isAnyAnswered(ofFamily);
  });
  const needed = witnesses.slice(atOnce.length).filter(({ address }) => silent.some(({ isOf }) => isOf(address)));
  return new Map([...outcomes, ...(await probeAddresses(needed, probe, signal))]);
}

/** Returns the reported change of a lease. A refresh and a miss are not reported. */
function describeChange(before: Lease | undefined, after: Lease | undefined, nowMs: number): string | undefined {
  if (after === undefined) return 'removed lease';
  if (before === undefined) return 'took lease';
  if (isActive(before, nowMs) === isActive(after, nowMs)) return undefined;
  return isActive(after, nowMs) ? 'took lease again' : 'dropped lease';
}

/** Reads our slices by their names if they lost the label and so are in no list. */
async function readSlices(
  kubernetes: ClusterPort,
  families: readonly PublishedFamily[],
): Promise<EndpointSliceObject[]> {
  const { namespace, name } = KUBERNETES_SERVICE;
  const slices = await kubernetes.list<EndpointSliceObject>(
    'EndpointSlice',
    namespace,
    `${SERVICE_NAME_LABEL}=${name}`,
  );
  const listed = new Set(slices.map(({ metadata }) => metadata.name));
  const missing = families.map(({ refs }) => refs.EndpointSlice).filter((ref) => !listed.has(ref.name));
  const unlabelled = await Promise.all(missing.map((ref) => kubernetes.get<EndpointSliceObject>(ref)));
  return [...slices, ...unlabelled.filter((slice) => slice !== undefined)];
}
