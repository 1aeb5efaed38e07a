import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import { undoDeregister } from '../../lib/deregister/deregister.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import { nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import { readCluster } from '../../lib/table/clusters.ts';
import { withAddresses } from '../repair/services.ts';
import { aClusterSpec, serversAt } from '../support/a-cluster-spec.ts';
import type { ReviewFields } from '../support/admission-review.ts';
import {
  type AdmissionWorld,
  type AllocateWorld,
  type Answered,
  anAdmissionWorld,
  anAllocateWorld,
} from '../support/allocate-world.ts';
import type { CutCalls } from '../support/cut-calls.ts';
import { found } from '../support/found.ts';
import { A, B, C, PassWorld, SHUTTING_DOWN } from '../support/pass-world.ts';
import { HOLD_MS } from '../support/ranges.ts';
import { CLUSTER, type LoopWorld, settledWorld } from './loop-world.ts';
import type { Subject } from './sweep.ts';

/* The requests of people, pipelines and API servers. A client without an answer sends its request again. */

type Request = Parameters<AllocateWorld['ask']>[0];

const NAMED_IP = { range: 'serviceips', value: '10.0.0.1' } as const;
const TWO_IPV6 = { range: 'secondaryserviceips', next: true, count: 2 } as const;
const THREE_RANGES: Request = { items: [NAMED_IP, TWO_IPV6, { range: 'servicenodeports', value: 30_002 }] };
const NEXT_IP = { range: 'serviceips', next: true } as const;
const TAKEN_PORT = { range: 'servicenodeports', value: 30_001 } as const;
const REFUSED_LAST: Request = { items: [NEXT_IP, TAKEN_PORT] };
const NAMED: NonNullable<Request['items']> = [NAMED_IP, TAKEN_PORT];

/** Returns a world in which `10.0.0.1` and port 30001 are taken. */
async function takenWorld(): Promise<AllocateWorld> {
  const world = await anAllocateWorld();
  await world.store(RANGE_KEYS.primary, { data: fromBits([0]) });
  await world.store(RANGE_KEYS.nodePorts, { data: fromBits([1]) });
  return world;
}

function asked(what: string, request: Request, world: () => Promise<AllocateWorld>): Subject<AllocateWorld> {
  return {
    what,
    world,
    run: (started, calls) => started.ask(request, calls.table(started.table)),
    again: (started) => started.askAgain(request),
    // The request is sent once more, and its answer is replayed.
    state: async (started) => ({ taken: await started.taken(), answer: await started.ask(request) }),
  };
}

/** Runs one pass of both repair loops in a cluster with these Services. */
async function repairPass(
  { table, clock }: Pick<AllocateWorld, 'table' | 'clock'>,
  services: readonly ServiceClaim[] = [],
): Promise<void> {
  const { spec, rangesGeneration } = found(await readCluster(table, CLUSTER));
  for (const loop of [clusterIpRepair, nodePortRepair]) {
    const context = new PassWorld(spec).list(...services).context({
      rangesGeneration,
      table,
      passId: `pass-at-${clock.nowMs}`,
      nowMs: () => clock.nowMs,
    });
    const { errors } = await loop.run(context);
    if (errors[0] !== undefined) throw errors[0];
  }
}

/** Returns a request that is not sent again: its hold ends, and a pass of each repair follows. */
function abandoned(what: string, request: Request, world: () => Promise<AllocateWorld>): Subject<AllocateWorld> {
  return {
    ...asked(what, request, world),
    again: async ({ clock }) => (clock.nowMs += HOLD_MS),
    state: async (started) => {
      await repairPass(started);
      return started.taken();
    },
  };
}

const takeUp = { holdOwner: 'team-a' };

/** Returns a world in which the items to claim are held for their owner, and port 30001 is taken. */
async function heldWorld(): Promise<AllocateWorld> {
  const world = await anAllocateWorld();
  await world.store(RANGE_KEYS.nodePorts, { data: fromBits([1]) });
  const holds = [{ items: ['10.0.0.1', '10.0.0.2'], owner: 'team-a', takenUpBy: 'owner' as const }];
  await world.store(RANGE_KEYS.primary, { data: fromBits([0, 1]), holds });
  return world;
}

export const ALLOCATIONS: readonly Subject<AllocateWorld>[] = [
  asked('an allocation in three ranges', THREE_RANGES, () => anAllocateWorld()),
  asked('an allocation that the last range refuses', REFUSED_LAST, takenWorld),
  abandoned('an allocation in three ranges that is not sent again', THREE_RANGES, () => anAllocateWorld()),
  abandoned('a refused allocation that is not sent again', REFUSED_LAST, takenWorld),
  asked('an allocation that claims a hold', { ...THREE_RANGES, takeUp }, heldWorld),
  asked('an allocation that claims a hold and is refused by the last range', { items: NAMED, takeUp }, heldWorld),
  {
    ...asked('a release in two ranges', { operation: 'release', items: NAMED }, takenWorld),
    mayDiffer: {
      at: /^(get|put) (requests|ranges)\//,
      ends: ['killedBefore', 'killedAfter', 'failedBefore', 'failedAfter', 'late', 'unclearBefore', 'unclearAfter'],
      why: 'what a cut release did is not known, and another caller may have it by now: the retry answers "unknown" and a repair frees it',
    },
  },
];

/** Returns a request to withdraw an API server. Two ticks follow it. */
function deregistered(what: string, request: object, world: () => Promise<LoopWorld>): Subject<LoopWorld> {
  return {
    what,
    world,
    run: (started, calls) => started.withdraw(request, calls),
    state: async (started) => {
      const atOnce = await started.state();
      await started.later(kubernetesService, 2);
      return { atOnce, later: await started.state() };
    },
  };
}

function undo({ table, nowMs }: LoopWorld, calls: CutCalls): Promise<unknown> {
  const spec = aClusterSpec({ name: CLUSTER, apiServers: serversAt(A, B, C) });
  return undoDeregister({ spec, table: calls.table(table), address: B, nowMs: () => nowMs });
}

export const DEREGISTRATIONS: readonly Subject<LoopWorld>[] = [
  deregistered('a deregistration', { address: B }, () => settledWorld(A, B, C)),
  deregistered('the deregistration of the last address', { address: B, lastOne: true }, () => settledWorld(B)),
  deregistered('the deregistration of an address that is not published', { address: C }, async () =>
    (await settledWorld(A, B)).register({ apiServers: serversAt(A, B, C) }),
  ),
  deregistered('the deregistration of a server that shuts down', { address: B, untilMinutes: 5 }, async () =>
    (await settledWorld(A, B, C)).answer(SHUTTING_DOWN, B),
  ),
  {
    ...deregistered('the undo of a deregistration', {}, async () => {
      const world = await settledWorld(A, B, C);
      await world.withdraw({ address: B });
      return world;
    }),
    run: undo,
  },
];

/** The number of passes: three passes that add strikes, and two after which no item counts as unclaimed. */
const REPAIRS = 5;
const REPAIR_MS = 180_000;

/**
 * Returns a subject that sends a review. Services are created with the last answers, and only the number of their items is
 * compared.
 */
function reviewed(what: string, review: ReviewFields): Subject<AdmissionWorld> {
  const OTHER: ReviewFields = { name: 'other', uid: 'u-2', spec: { type: 'NodePort' } };
  return {
    what,
    world: () => anAdmissionWorld(),
    run: (world, calls) => world.ask(review, calls.table(world.table)),
    again: async (world) => world.restart(),
    state: async (world) => {
      const services = [];
      for (const each of [review, OTHER]) services.push(created(each, await world.ask(each)));
      for (let pass = 0; pass < REPAIRS; pass++) {
        world.clock.nowMs += REPAIR_MS;
        await repairPass(world, services);
      }
      const given = services.flatMap(({ clusterIPs, ports }) => [
        ...clusterIPs,
        ...ports.map(({ nodePort }) => `${nodePort}`),
      ]);
      const taken = Object.keys(await world.taken());
      return { isTaken: taken.sort().join() === given.toSorted().join(), count: new Set(given).size };
    },
  };
}

/** Returns the Service that an API server creates after the answer. */
function created({ name = 'web', spec = {} }: ReviewFields, { allowed, patch = [] }: Answered): ServiceClaim {
  if (!allowed) throw new Error(`expected that ${name} is allowed`);
  const whole = { ...spec, ...Object.fromEntries(patch.map(({ path, value }) => [path, value])) };
  const clusterIPs = Object(whole)['/spec/clusterIPs'] ?? Object(whole).clusterIPs;
  const nodePort = Object(whole)['/spec/ports/0/nodePort'] ?? Object(whole).ports[0].nodePort;
  return { ...withAddresses(name, ...clusterIPs), type: 'NodePort', ports: [{ protocol: 'TCP', nodePort }] };
}

const ADDRESSED = { clusterIP: '10.0.0.40', clusterIPs: ['10.0.0.40'] };

export const REVIEWS: readonly Subject<AdmissionWorld>[] = [
  reviewed('the review of a dual-stack NodePort Service', {
    spec: { type: 'NodePort', ipFamilyPolicy: 'RequireDualStack' },
  }),
  reviewed('the review of a Service that names its address and port', {
    spec: { type: 'NodePort', ...ADDRESSED, ports: [{ port: 80, nodePort: 30_040 }] },
  }),
  reviewed('the review of a Service that becomes a NodePort', {
    spec: { type: 'NodePort', ...ADDRESSED },
    oldSpec: { type: 'ClusterIP', ...ADDRESSED },
  }),
];
