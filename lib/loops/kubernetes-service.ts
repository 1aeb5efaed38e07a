import { removeWithdrawn } from '../api-servers/remove-address.ts';
import { type EndpointsWritten, removalLines, writeEndpoints } from '../api-servers/write-endpoints.ts';
import type { Finding } from '../cluster/finding.ts';
import { isActive, type Lease, withdrawnUntil } from '../cluster/lease.ts';
import { afterWrite, type ContestState, contestStateFrom, judgeContest } from '../endpoints/contested-writes.ts';
import {
  EndpointsError,
  foreignSlice,
  noLiveLease,
  standingWithdrawals,
  twoOwners,
} from '../endpoints/endpoint-findings.ts';
import { endpointPorts } from '../endpoints/kubernetes-service.ts';
import {
  ENDPOINTS_REF,
  type EndpointSliceObject,
  type EndpointsObject,
  KUBERNETES_SERVICE,
  readyAddresses,
  SERVICE_NAME_LABEL,
  SERVICE_REF,
  type ServiceObject,
  SLICE_REF,
} from '../endpoints/objects.ts';
import { type EndpointsObservation, isUrgent, planEndpoints, plansWrite } from '../endpoints/plan-endpoints.ts';
import type { ProbeOutcome } from '../endpoints/probe-outcome.ts';
import { excludedAddresses, publishedAddresses } from '../endpoints/published-addresses.ts';
import type { EndpointsDecision } from '../endpoints/reconcilers.ts';
import { FIELD_MANAGER } from '../kubernetes/api-server-cluster.ts';
import { plainValue } from '../table/item-values.ts';
import { ensureService, type ServiceEnsured } from './ensure-service.ts';
import type { LoopDefinition, PassContext, PassReport } from './pass.ts';
import { type LeasesObserved, observeLeases, observeLeasesAgain, refreshLeases } from './refresh-leases.ts';

/**
 * Keeps the Service `default/kubernetes`, and publishes the API servers that answer as its Endpoints and EndpointSlice
 * (`pkg/controlplane/controller/kubernetesservice/controller.go`, `pkg/controlplane/reconcilers`). Leases of servers that
 * answer are refreshed before anything is decided, so that a late tick removes no address.
 */
export const kubernetesService: LoopDefinition = { id: 'kubernetes-service', run };

async function run(context: PassContext): Promise<PassReport> {
  const { spec, kubernetes } = context;
  if (spec.endpoints.reconciler === 'none') {
    const service = await ensureService(context, await kubernetes.get<ServiceObject>(SERVICE_REF));
    return reportOf(service, { changes: [], findings: [], counts: {} });
  }
  const refreshed = await refreshLeases(context);
  const [currentService, current, slices] = await Promise.all([
    kubernetes.get<ServiceObject>(SERVICE_REF),
    kubernetes.get<EndpointsObject>(ENDPOINTS_REF),
    readSlices(context),
  ]);
  const plan = (leases: LeasesObserved) => {
    const observation = observationOf(context, leases, current, slices);
    return { leases, observation, decision: planEndpoints(observation) };
  };
  const published = readyAddresses(current);
  const first = plan(await observeLeases(context, refreshed, published));
  // A pass that writes nothing, as nearly all do, reads its leases only once (docs/adr/0018).
  const isFinal = first.decision.outcome !== 'refused' && !plansAnyWrite(first.decision, first.observation.slice);
  const { leases, observation, decision } = isFinal
    ? first
    : plan(await observeLeasesAgain(context, first.leases, published));
  // Everything is read: the writes follow.
  const service = await ensureService(context, currentService);
  if (!service.exists) return reportOf(service, { ...leases, counts: {} });

  const result = await publish(context, observation, decision, leases);
  const standing = standingWithdrawals(spec.name, observation.leases, observation.nowMs);
  const findings = [...leases.findings, ...standing, ...slices.flatMap(foreignSlice), ...result.findings];
  const lateProbes = [...leases.outcomes.values()].filter(({ late }) => late).length;
  const counts = {
    addresses: leases.expected.length,
    leasesHeld: observation.live.length,
    ...(lateProbes > 0 && { lateProbes }),
  };
  return reportOf(service, { ...result, changes: leases.changes, findings, counts });
}

/** Our slice is in no list when it lost its label: then it is read by its name. */
async function readSlices({ kubernetes }: PassContext): Promise<EndpointSliceObject[]> {
  const { namespace, name } = KUBERNETES_SERVICE;
  const selector = `${SERVICE_NAME_LABEL}=${name}`;
  const slices = await kubernetes.list<EndpointSliceObject>('EndpointSlice', namespace, selector);
  if (slices.some(isNamedAsOurs)) return slices;
  const unlabelled = await kubernetes.get<EndpointSliceObject>(SLICE_REF);
  return unlabelled === undefined ? slices : [...slices, unlabelled];
}

interface Observation extends EndpointsObservation {
  readonly leases: readonly Lease[];
  readonly nowMs: number;
}

/** Without a valid lease no address is live, although some have a lease: the pass is refused, and the endpoints stay. */
function observationOf(
  { spec, nowMs }: PassContext,
  { expected, leases }: LeasesObserved,
  current: EndpointsObject | undefined,
  slices: readonly EndpointSliceObject[],
): Observation {
  const decidedAtMs = nowMs();
  const isAnyHeld = leases.some((lease) => isActive(lease, decidedAtMs));
  const live = isAnyHeld ? publishedAddresses(leases, expected, decidedAtMs) : [];
  const excluded = excludedAddresses(leases, live, spec.endpoints.reconciler, decidedAtMs);
  return { spec, current, slice: slices.find(isNamedAsOurs), live, excluded, leases, nowMs: decidedAtMs };
}

interface Published {
  readonly findings: readonly Finding[];
  readonly written?: EndpointsWritten;
  readonly removed?: readonly string[];
  readonly error?: Error;
  readonly state?: ContestState;
}

async function publish(
  context: PassContext,
  observation: Observation,
  decision: EndpointsDecision,
  { outcomes }: LeasesObserved,
): Promise<Published> {
  const { spec, kubernetes, state } = context;
  const before = contestStateFrom(state);
  if (decision.outcome === 'refused') {
    const finding = noLiveLease({ cluster: spec.name, outcomes, withdrawn: withdrawals(observation) });
    return { findings: [finding], error: new EndpointsError('NoLiveLease', finding.message), state: before };
  }
  if (decision.outcome === 'nothing') return { findings: [], state: before };

  const { verdict, facts } = judged(observation, decision, before);
  const findings = verdict.twoOwners
    ? [twoOwners([observation.current, observation.slice], FIELD_MANAGER, verdict)]
    : [];
  if (verdict.withhold || !plansWrite(decision, observation.slice)) return { findings, state: verdict.state };
  const written = await writeEndpoints(kubernetes, decision, async () => observation.slice);
  const removed = removalsOf(observation, readyAddresses(written.endpoints ?? observation.current), outcomes);
  // Another writer can only undo what was written.
  if (written.withheld) return { findings, written, removed, state: verdict.state };
  const isWritten = written.error === undefined;
  const after = isWritten ? afterWrite(verdict, { ...facts, versions: versionsOf(written) }) : verdict.state;
  const { changes, error } = await removeWithdrawn(context, observation, written);
  const all = { ...written, changes: [...written.changes, ...changes] };
  return { findings, written: all, removed, ...(error && { error }), state: after };
}

function removalsOf(
  { current, leases, nowMs }: Observation,
  after: readonly string[],
  outcomes: ReadonlyMap<string, ProbeOutcome>,
): string[] {
  const details = new Map([...outcomes].map(([address, { detail }]) => [address, detail]));
  return removalLines(readyAddresses(current), after, leases, details, nowMs);
}

function plansAnyWrite(decision: EndpointsDecision, slice: EndpointSliceObject | undefined): boolean {
  return decision.outcome !== 'refused' && decision.outcome !== 'nothing' && plansWrite(decision, slice);
}

function withdrawals({ leases, nowMs }: Observation): ReadonlyMap<string, string> {
  return new Map(
    leases.flatMap((lease) => {
      const untilMs = withdrawnUntil(lease, nowMs);
      return untilMs === undefined ? [] : [[lease.address, new Date(untilMs).toISOString()]];
    }),
  );
}

function judged(observation: Observation, decision: EndpointsDecision, before: ContestState) {
  const { spec, current, slice, live, nowMs } = observation;
  const facts = {
    wanted: JSON.stringify([live, endpointPorts(spec)]),
    differs: plansWrite(decision, slice),
    versions: versionsOf({ ...(current && { endpoints: current }), ...(slice && { slice }) }),
    urgent: isUrgent(observation),
    nowMs,
    intervalMs: spec.intervalSeconds['kubernetes-service'] * 1000,
  };
  return { facts, verdict: judgeContest(before, facts) };
}

function versionsOf({ endpoints, slice }: Pick<EndpointsWritten, 'endpoints' | 'slice'>): string[] {
  return [endpoints, slice].map((object) => object?.metadata.resourceVersion ?? '');
}

function isNamedAsOurs({ metadata }: EndpointSliceObject): boolean {
  return metadata.name === KUBERNETES_SERVICE.name;
}

function reportOf(
  service: ServiceEnsured,
  rest: Pick<PassReport, 'changes' | 'findings' | 'counts'> & Omit<Published, 'findings'>,
): PassReport {
  const { written, removed = [], state } = rest;
  const removals = removed.map((line) => `${written?.withheld ? 'remove' : 'removed'} ${line}`);
  const errors = [service.error, rest.error, written?.error].filter((error) => error !== undefined);
  return {
    changes: [...rest.changes, ...service.changes, ...(written?.changes ?? []), ...(written?.withheld ? [] : removals)],
    ...(written?.withheld && { wouldWrite: removals }),
    findings: rest.findings,
    counts: rest.counts,
    errors,
    ...(state !== undefined && { state: plainValue(state) }),
  };
}
