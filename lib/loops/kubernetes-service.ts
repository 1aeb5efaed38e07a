import { describeTarget, isOfOtherPort, probeServers, ticksOfATurn } from '../api-servers/probe-addresses.ts';
import { publish, writeService } from '../api-servers/write-objects.ts';
import type { Finding } from '../cluster/finding.ts';
import {
  ENDPOINTS_REF,
  type EndpointSliceObject,
  type EndpointsObject,
  KUBERNETES_SERVICE,
  type PublishedFamily,
  type ReadFamily,
  SERVICE_NAME_LABEL,
  SERVICE_REF,
  type ServiceObject,
} from '../cluster/published-objects.ts';
import { type ContestState, contestStateFrom } from '../endpoints/contested-writes.ts';
import {
  deadServersPublished,
  EndpointsError,
  probeFindings,
  serverEvents,
  standingWithdrawals,
} from '../endpoints/endpoint-findings.ts';
import { planService, serviceFindings } from '../endpoints/kubernetes-service.ts';
import { decideLeases, describeChanges } from '../endpoints/lease-decisions.ts';
import { addressesWanted, endpointsPublication, slicesPublication } from '../endpoints/publication.ts';
import { publishedAddresses, publishedServers, type ServersSeen } from '../endpoints/published-servers.ts';
import { ClusterError, type ClusterPort, resultOrFault } from '../kubernetes/cluster-port.ts';
import { isActive, type LeaseChanges } from '../leases/lease.ts';
import { changeLeases, notOverwritten, readLeases, type StoredLeases } from '../table/leases.ts';
import { plainValue } from '../table/stored-item.ts';
import { defined, isRecord } from '../util/values.ts';
import type { LoopDefinition, PassContext, PassReport } from './pass.ts';

/*
 * Maintains the Service `default/kubernetes`. Its Endpoints and EndpointSlice publish the API servers that answer
 * (`pkg/controlplane/controller/kubernetesservice/controller.go`, `pkg/controlplane/reconcilers`). A pass
 *
 *   1. probes the API servers, saves their leases, and reads the Service, the Endpoints and the slices;
 *   2. decides which addresses to publish, and what to write;
 *   3. reads the leases and decides again, if there is a write;
 *   4. creates a missing Service, writes the Endpoints and the slices, and then corrects the Service.
 *
 * An API server that answers or does not answer changes its lease (lib/leases/lease-states.ts). A lease that could not be
 * written counts if its address answered, and an address without a lease gets one. If a look-up fails, its known and published
 * records stay. The pass does not write to the endpoints if no lease is active (`noLiveLease`), fails if a server is to be
 * removed and no API server accepts writes (`deadServerPublished`), and delays corrections of what another writer changes
 * (`twoOwners`, `foreignSlice`). If an object cannot be read or written, the pass fails, but publishes what does not depend on it.
 *
 * A pass may write only what it decided from leases that were read after the objects (docs/adr/0018), because an address may be
 * deregistered meanwhile (lib/deregister/remove-address.ts). Most passes need no second decision, because they write nothing.
 */
export const kubernetesService: LoopDefinition = { id: 'kubernetes-service', run };

async function run(context: PassContext): Promise<PassReport> {
  const { spec, kubernetes } = context;
  if (spec.endpoints.reconciler !== 'none') return publishServers(context);
  const service = await kubernetes.get<ServiceObject>(SERVICE_REF);
  const { changes, errors, findings = [] } = await writeService(context, planService(spec, service));
  return { changes, errors, findings: [...serviceFindings(spec, service), ...findings], counts: {} };
}

async function publishServers(context: PassContext): Promise<PassReport> {
  const gathered = await gather(context);
  if ('errors' in gathered) return gathered;
  let world = gathered;
  let plan = decide(world);
  if (!plan.isQuiet) {
    world = await gatherAgain(context, world, plan.remembered);
    plan = decide(world);
  }
  return apply(context, world, plan);
}

type Families<Family> = readonly [Family, ...Family[]];

/** The input of the pass's decision: everything that the pass has read. */
interface World extends ServersSeen {
  readonly stored: StoredLeases;
  /** The lines of the report about leases that this pass has changed. */
  readonly lines: readonly string[];
  readonly findings: readonly Finding[];
  /** The Service; `undefined` if it is missing, or the error if it could not be read. */
  readonly service: ServiceObject | ClusterError | undefined;
  /** The errors about objects. The pass continues without the objects that could not be read. */
  readonly unread: readonly ClusterError[];
  /** The slices with the Service's label, and the slices with the names of our own slices. */
  readonly slices: readonly EndpointSliceObject[];
  /** The state, saved by the last pass, about another writer that repeatedly changes the Endpoints and their slice. */
  readonly contest: ContestState;
  readonly slicesContest: ContestState;
}

/**
 * Reads the input of the decision. First saves the outcomes of the probes, because the cluster may not answer. If the reads fail,
 * throws their error, or returns a report with it if no lease is active or a published address is dead.
 */
async function gather(context: PassContext): Promise<World | PassReport> {
  const { spec, table, kubernetes, nowMs, triesEveryMs, previous } = context;
  const state = previous?.state;
  const before = await readLeases(table, spec.name);
  const probed = await probeServers(context, before.leases);
  const { families, addresses: expected, findings, unresolved, outcomes } = probed;
  const turnMs = triesEveryMs * ticksOfATurn(expected.length);
  const seen = { families, leases: before.leases, expected, outcomes };
  const observation = { spec, ...seen, nowMs: nowMs(), triesEveryMs: turnMs };
  const decided = decideLeases(observation);
  const { written, present: stored, unwritten } = await changeLeases(table, spec.name, before, decided);
  const noteOf = (address: string) => {
    const found = expected.find((one) => one.address === address);
    return found !== undefined && isOfOtherPort(found, spec) ? `, ${describeTarget(found, spec)}` : '';
  };
  const lines = describeChanges(observation, decided, written, noteOf);
  const contests = [state, isRecord(state) ? state['slices'] : undefined].map(contestStateFrom);
  const [contest = {}, slicesContest = {}] = contests;
  const read = await readObjects(kubernetes, families).catch((error: unknown): PassReport => {
    if (!(error instanceof ClusterError)) throw error;
    const live = publishedAddresses(stored.leases, expected, nowMs());
    const activeLeases = stored.leases.filter((lease) => isActive(lease, nowMs())).length;
    const wanted = spec.mode === 'observe' ? [] : contests.flatMap(addressesWanted);
    const dead = deadServersPublished(wanted, live, outcomes, error);
    if (dead.length === 0 && activeLeases > 0) throw error;
    const report = { changes: lines, findings: [...findings, ...dead], counts: { activeLeases }, errors: [error] };
    return { ...report, ...defined({ state }) };
  });
  if ('errors' in read) return read;
  return {
    ...read,
    spec,
    stored,
    unwritten,
    expected,
    outcomes,
    unresolved,
    lines,
    findings: [...findings, ...probeFindings(outcomes)],
    contest,
    slicesContest,
    nowMs: nowMs(),
  };
}

/** Reads the Service, the Endpoints and the slices. `unread` has an error for each object or list that cannot be read. */
async function readObjects(kubernetes: ClusterPort, families: Families<PublishedFamily>) {
  const [service, endpoints, { slices, ofFamilies, tooLarge }] = await Promise.all([
    resultOrFault(kubernetes.get<ServiceObject>(SERVICE_REF)),
    resultOrFault(kubernetes.get<EndpointsObject>(ENDPOINTS_REF)),
    readSlices(kubernetes, families),
  ]);
  const withObjects = (family: PublishedFamily, slice: EndpointSliceObject | ClusterError | undefined): ReadFamily => {
    const ofEndpoints = family.refs.Endpoints && !(endpoints instanceof ClusterError) && { Endpoints: endpoints };
    return {
      ...family,
      objects: { ...ofEndpoints, ...(!(slice instanceof ClusterError) && { EndpointSlice: slice }) },
    };
  };
  const [first, ...others] = families;
  const read: Families<ReadFamily> = [
    withObjects(first, ofFamilies[0]),
    ...others.map((family, index) => withObjects(family, ofFamilies[index + 1])),
  ];
  return {
    families: read,
    slices,
    unread: [service, endpoints, tooLarge, ...ofFamilies].filter((one) => one instanceof ClusterError),
    service,
  };
}

/** Lists the slices with the Service's label. Reads our own slices by name if they lost the label, or if the list is too large. */
async function readSlices(kubernetes: ClusterPort, families: readonly PublishedFamily[]) {
  const { namespace, name: service } = KUBERNETES_SERVICE;
  const list = await kubernetes
    .list<EndpointSliceObject>('EndpointSlice', namespace, `${SERVICE_NAME_LABEL}=${service}`)
    .catch((error: unknown) => {
      if (!(error instanceof ClusterError) || error.code !== 'ReplyTooLarge') throw error;
      return error;
    });
  const tooLarge = list instanceof ClusterError ? list : undefined;
  const slices = list instanceof ClusterError ? [] : list;
  const listed = new Map(slices.map((slice) => [slice.metadata.name, slice]));
  const ofFamilies = await Promise.all(
    families.map(async ({ refs: { EndpointSlice: ref } }) => {
      return listed.get(ref.name) ?? resultOrFault(kubernetes.get<EndpointSliceObject>(ref));
    }),
  );
  const read = ofFamilies.flatMap((slice) => (slice === undefined || slice instanceof ClusterError ? [] : slice));
  return { slices: [...new Set([...slices, ...read])], ofFamilies, tooLarge };
}

/** Reads the leases again after the objects, because an address may have been deregistered since the leases were written. */
async function gatherAgain(context: PassContext, world: World, remembered: LeaseChanges): Promise<World> {
  const { table, spec, nowMs } = context;
  const { written } = await changeLeases(table, spec.name, world.stored, remembered);
  const lines = [...written].map((address) => {
    return `remembered ${address}, which is published: ${remembered.get(address)?.lastProbe ?? 'it was not probed'}`;
  });
  const stored = await readLeases(table, spec.name);
  const unwritten = notOverwritten(world.unwritten, world.stored, stored);
  return { ...world, stored, unwritten, lines: [...world.lines, ...lines], nowMs: nowMs() };
}

function decide(world: World) {
  const { spec, nowMs, unread } = world;
  const { primary, second, leases, addresses, remembered } = publishedServers(world);
  const endpoints = endpointsPublication(primary, comparable(world, world.contest));
  const slices = slicesPublication(world.slices, primary, second, comparable(world, world.slicesContest));
  const isServiceRead = !(world.service instanceof ClusterError);
  const service = isServiceRead ? planService(spec, world.service) : undefined;
  const refusals = endpoints.findings.filter(({ type }) => type === 'noLiveLease');
  const writes = endpoints.writes.length + slices.writes.length + remembered.size;
  const lateProbes = [...world.outcomes.values()].filter(({ late }) => late).length;
  const activeLeases = primary.live.length + (second?.live.length ?? 0);
  return {
    /** True if the pass has nothing to write and no refusal to report. Such a pass does not read and decide again. */
    isQuiet: refusals.length === 0 && writes === 0 && service === undefined,
    service,
    remembered,
    endpoints,
    slices,
    counts: { addresses, activeLeases, ...(lateProbes > 0 && { lateProbes }) },
    findings: [
      ...world.findings,
      ...(isServiceRead ? serviceFindings(spec, world.service) : []),
      ...standingWithdrawals(spec.name, leases, nowMs),
      ...slices.findings,
      ...endpoints.findings,
    ],
    errors: [...refusals.map(({ message }) => new EndpointsError('NoLiveLease', message)), ...unread],
  };
}

/**
 * Returns the contest state to compare with the objects. Omits our last write if an object was not read, or if the Service is
 * missing, because the API server deletes the Endpoints of a deleted Service.
 */
function comparable({ unread, service }: World, before: ContestState): ContestState {
  return unread.length === 0 && service !== undefined ? before : defined({ contest: before.contest });
}

async function apply(context: PassContext, world: World, plan: ReturnType<typeof decide>): Promise<PassReport> {
  const { kubernetes } = context;
  const { findings, counts } = plan;
  const isUpdate = plan.service?.verb === 'update';
  const created = await writeService(context, isUpdate ? undefined : plan.service);
  if (created.isMissing) {
    const changes = [...world.lines, ...created.changes];
    return { changes, findings: world.findings, counts: {}, errors: created.errors };
  }
  const endpoints = await publish(kubernetes, plan.endpoints);
  // If the Endpoints were not written, another writer's slice may be the only one with addresses, so no slice is deleted.
  const isDeleting = plan.errors.length + endpoints.errors.length === 0;
  const writes = plan.slices.writes.filter(({ verb }) => isDeleting || verb !== 'delete');
  const slices = await publish(kubernetes, { ...plan.slices, writes });
  // The update of the Service comes last, so that the endpoints are published even if a webhook does not answer.
  const service = isUpdate ? await writeService(context, plan.service) : created;
  const wouldWrite = [...endpoints.wouldWrite, ...slices.wouldWrite];
  const moves = [endpoints.moves, slices.moves];
  const found = world.service instanceof ClusterError ? undefined : world.service;
  return {
    changes: [...world.lines, ...service.changes, ...endpoints.changes, ...slices.changes],
    ...(wouldWrite.length > 0 && { wouldWrite }),
    findings: [...findings, ...(service.findings ?? [])],
    events: moves.flatMap((moved) => (found === undefined ? [] : serverEvents(found, moved))),
    counts,
    errors: [...service.errors, ...plan.errors, ...endpoints.errors, ...slices.errors],
    state: plainValue({ ...endpoints.state, ...(slices.state && { slices: slices.state }) }),
  };
}
