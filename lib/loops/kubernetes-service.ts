import { publish, writeService } from '../api-servers/write-objects.ts';
import { planService } from '../endpoints/kubernetes-service.ts';
import { SERVICE_REF, type ServiceObject } from '../endpoints/objects.ts';
import { plainValue } from '../table/stored-item.ts';
import { decide, type EndpointsPlan } from './endpoints-decide.ts';
import { gather, gatherAgain, type World } from './endpoints-gather.ts';
import type { LoopDefinition, PassContext, PassReport } from './pass.ts';

/*
 * Keeps the Service `default/kubernetes`, and publishes the API servers that answer as its Endpoints and EndpointSlice
 * (`pkg/controlplane/controller/kubernetesservice/controller.go`, `pkg/controlplane/reconcilers`). A pass handles
 *
 *   - an API server that answers, or does not: its lease is saved before anything else (lib/endpoints/lease-states.ts);
 *   - an address that is published without a lease: it gets one, and two misses remove it;
 *   - a lease that could not be written: an address that answered stays published;
 *   - a host name whose look-up failed: its known and published records stay;
 *   - a Service that is missing, or differs where `service.reconcile` is set;
 *   - Endpoints or a slice that publish something else than the live addresses: they are written;
 *   - no active lease: nothing is written to the endpoints (`noLiveLease`);
 *   - another writer of the endpoints: it is corrected, and then reported and delayed (`twoOwners`, `foreignSlice`);
 *   - an address that is deregistered while the pass adds it: it is removed again;
 *   - a withdrawal whose server still runs after ten minutes: it is reported.
 *
 * A conclusion that writes needs the leases as they are after the objects were read (docs/adr/0018): they are read again, and
 * the pass decides again. Nearly all passes write nothing.
 */
export const kubernetesService: LoopDefinition = { id: 'kubernetes-service', run };

async function run(context: PassContext): Promise<PassReport> {
  const { spec, kubernetes } = context;
  if (spec.endpoints.reconciler !== 'none') return publishServers(context);
  const write = planService(spec, await kubernetes.get<ServiceObject>(SERVICE_REF));
  const { changes, errors } = await writeService(context, write);
  return { changes, errors, findings: [], counts: {} };
}

async function publishServers(context: PassContext): Promise<PassReport> {
  let world = await gather(context);
  let plan = decide(world);
  if (!plan.isQuiet) {
    world = await gatherAgain(context, world, plan.remembered);
    plan = decide(world);
  }
  return apply(context, world, plan);
}

/** Writes the Service, the Endpoints and the slices; then reports. */
async function apply(context: PassContext, world: World, plan: EndpointsPlan): Promise<PassReport> {
  const { kubernetes } = context;
  const { findings, counts } = plan;
  const service = await writeService(context, plan.service);
  const changes = [...world.lines, ...service.changes];
  if (service.isMissing) return { changes, findings: world.findings, counts: {}, errors: service.errors };
  const endpoints = await publish(kubernetes, plan.endpoints, world.nowMs);
  // Another writer's slice may be the only one that has addresses.
  const isDeleting = plan.errors.length + endpoints.errors.length === 0;
  const writes = plan.slices.writes.filter(({ verb }) => isDeleting || verb !== 'delete');
  const slices = await publish(kubernetes, { ...plan.slices, writes }, world.nowMs);
  const wouldWrite = [...endpoints.wouldWrite, ...slices.wouldWrite];
  return {
    changes: [...changes, ...endpoints.changes, ...slices.changes],
    ...(wouldWrite.length > 0 && { wouldWrite }),
    ...{ findings, counts },
    errors: [...service.errors, ...plan.errors, ...endpoints.errors, ...slices.errors],
    state: plainValue({ ...endpoints.state, ...(slices.state && { slices: slices.state }) }),
  };
}
