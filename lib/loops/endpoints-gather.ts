import { probeServers, ticksOfATurn } from '../api-servers/probe-addresses.ts';
import type { Finding } from '../cluster/finding.ts';
import type { LeaseChanges } from '../cluster/lease.ts';
import { isRecord } from '../cluster/values.ts';
import { type ContestState, contestStateFrom } from '../endpoints/contested-writes.ts';
import { probeFindings } from '../endpoints/endpoint-findings.ts';
import { decideLeases, describeChanges } from '../endpoints/lease-decisions.ts';
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
import type { ServersSeen } from '../endpoints/published-servers.ts';
import type { ClusterPort } from '../kubernetes/cluster-port.ts';
import { changeLeases, isSameLease, leaseOf, readLeases, type StoredLeases } from '../table/leases.ts';
import type { PassContext } from './pass.ts';

/** The input of the decision. */
export interface World extends ServersSeen {
  readonly stored: StoredLeases;
  /** The lines of the report about leases that this pass has changed. */
  readonly lines: readonly string[];
  readonly findings: readonly Finding[];
  readonly service: ServiceObject | undefined;
  /** The slices of the Service, and the slices with our names. */
  readonly slices: readonly EndpointSliceObject[];
  /** The state after the last pass: of the Endpoints and their slice, and of the other slices. */
  readonly contest: ContestState;
  readonly slicesContest: ContestState;
}

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
  const { addresses: expected, findings, unresolved, outcomes } = await probeServers(context, families, before.leases);
  const observation = {
    ...{ spec, families, leases: before.leases, expected, outcomes, nowMs: nowMs() },
    triesEveryMs: triesEveryMs * ticksOfATurn(expected.length),
  };
  const decided = decideLeases(observation);
  const { written, present: stored, unwritten } = await changeLeases(table, spec.name, before, decided);
  const lines = describeChanges(observation, decided, written);
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
