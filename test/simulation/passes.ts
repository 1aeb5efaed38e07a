import { heartbeat } from '../../cli/heartbeat/agent.ts';
import type { Summary } from '../../lib/dispatch/dispatch.ts';
import { queueEvent } from '../support/memory-queue.ts';
import { CLUSTER, OTHER_STACK } from './cluster.ts';
import { probeReplyOf } from './endpoint-truth.ts';
import { rollOut, start } from './operators.ts';
import { Process, type ProcessKind } from './process.ts';
import { INTERVAL_MS } from './settings.ts';
import type { World } from './world.ts';

const MINUTE_MS = 60_000;
/** The time after which the queue delivers a message again whose invocation did not end well. */
const VISIBILITY_MS = 65_000;
const HEARTBEAT_MS = 10_000;
const LEASE_MS = 15_000;
/** The interval of another deployment that uses the same table by mistake. */
const OTHERS_MS = 20_000;
const REPAIRS = [
  ['repair', ['ranges/serviceips', 'ranges/secondaryserviceips']],
  ['portRepair', ['ranges/servicenodeports']],
] as const;

export function startPasses(world: World): void {
  if (world.has('endpoints')) {
    if (world.has('rollouts')) void rollOut(world);
    world.functions.onMessage = (body) => void deliver(world, body);
    void schedule(world, 'endpoints', MINUTE_MS, () => void world.functions.invoke('endpoints', scheduled(world)));
    if (world.has('crashLoop')) void crashLoop(world);
    for (const [index, address] of [...world.cluster.agents].entries()) void keepLease(world, address, index * 700);
  }
  const repairs = repairsOf(world);
  for (const { kind, run } of repairs) void schedule(world, kind, INTERVAL_MS, run);
  if (!world.has('otherStack')) return;
  const kinds = [...repairs.map(({ kind }) => kind), ...(world.has('endpoints') ? (['endpoints'] as const) : [])];
  for (const kind of kinds) {
    const invoke = () => void world.functions.invoke(kind, { force: true }, OTHERS_MS, OTHER_STACK);
    void schedule(world, `other ${kind}`, OTHERS_MS, invoke);
  }
}

/** Delivers a message again and again until an invocation ends without an error, as SQS does. */
async function deliver(world: World, body: string, receives = 1): Promise<void> {
  const { functions, clock } = world;
  if (functions.areStopped) return;
  const visibleAtMs = clock.nowMs + VISIBILITY_MS;
  const answer = await functions.invoke('endpoints', queueEvent(body, receives));
  if (answer !== undefined && !(answer instanceof Error)) return;
  clock.in(visibleAtMs - clock.nowMs, () => void deliver(world, body, receives + 1));
}

export function repairOnce(world: World): void {
  for (const { run } of repairsOf(world)) run();
}

function repairsOf(world: World) {
  const ofPart = ([kind]: (typeof REPAIRS)[number]) => kind === 'repair' || world.has('nodePorts');
  const isAny = world.has('ranges') || world.has('addresses');
  return REPAIRS.filter((each) => isAny && ofPart(each)).map(([kind, keys]) => ({
    kind,
    run: () => void repair(world, kind, world.has('ranges') ? keys : []),
  }));
}

/** Invokes a function in each interval, usually a little late, seldom very late, and sometimes twice. */
async function schedule(world: World, name: string, everyMs: number, invoke: () => void): Promise<void> {
  const { clock } = world;
  const chance = world.chance.of(`schedule of ${name}`);
  const late = async (ms: number) => {
    await clock.wait(ms);
    if (!world.functions.areStopped) invoke();
  };
  while (!world.hasEnded) {
    const lateMs = world.isFaulty && chance.once(6) ? chance.pick(everyMs / 4) : chance.pick(800);
    void late(lateMs);
    if (world.isFaulty && chance.once(4)) void late(lateMs + chance.pick(chance.oneOf([600, 6_000, 12_000])));
    await clock.wait(everyMs);
  }
}

function scheduled({ clock }: World): object {
  return { 'detail-type': 'Scheduled Event', time: new Date(clock.nowMs).toISOString() };
}

/**
 * Invokes a repair. After a successful pass that began while the table was the only allocator, the table must have the items of
 * every Service.
 */
async function repair(world: World, kind: ProcessKind, keys: readonly string[]): Promise<void> {
  const { inChargeSinceMs } = world.cluster;
  if (world.functions.areRepairsStopped) return;
  const summary = await world.functions.invoke<Summary>(kind, { force: true }, 150_000);
  world.note(`${kind}: ${summary instanceof Error ? summary.message : JSON.stringify(summary)}`);
  if (summary === undefined || summary instanceof Error || summary.passes !== 1 || summary.failed !== 0) return;
  if (inChargeSinceMs === undefined || inChargeSinceMs !== world.cluster.inChargeSinceMs) return;
  for (const key of keys) world.ranges.setRecord(key);
}

async function keepLease(world: World, address: string, laterMs: number): Promise<void> {
  const { clock } = world;
  await clock.wait(laterMs);
  for (let number = 1; !world.hasEnded; ) {
    const agent = new Process(world, `agent-${address}-${number}`, 'agent', world.functions.skewOf(address));
    while (!agent.isDead && !world.hasEnded) {
      await clock.wait(HEARTBEAT_MS);
      // The agent is stopped on a host that is no longer an API server.
      if (!world.cluster.deadAgents.has(address) && world.endpoints.isExpected(address))
        await refresh(world, agent, address);
    }
    number++;
  }
}

async function refresh(world: World, agent: Process, address: string): Promise<void> {
  const probe = async () => {
    const server = world.servers.server(address);
    const reply = probeReplyOf(server, world.servers.readiness(server));
    world.endpoints.probed(agent, address, { status: reply.kind === 'status' ? reply.status : undefined });
    return reply;
  };
  const { signal, cancel } = agent.startDeadline(HEARTBEAT_MS - 500);
  await world.functions
    .kbctl(agent, signal)
    .then((clocked) => heartbeat({ ...clocked, cluster: CLUSTER, address, leaseMs: LEASE_MS, probe }))
    .catch(() => {});
  cancel();
}

/**
 * Stops and starts the first API server, which has no agent, again and again. Meanwhile starts new agents of the other servers,
 * each for a single refresh. In a busy world the first API server is not stopped.
 */
async function crashLoop(world: World): Promise<void> {
  const { clock, servers } = world;
  const chance = world.chance.of('crash loop');
  const { agents, firstAddresses } = world.cluster;
  const [address] = firstAddresses;
  for (let number = 1; world.isFaulty && !servers.hasMoved; ) {
    if (!world.has('busy')) {
      await clock.wait(chance.pick(15_000));
      servers.set(address, { state: chance.oneOf(['down', 'silent']) });
      await clock.wait(chance.oneOf([15_000, 35_000, 40_000]));
      start(world, address);
    }
    for (const untilMs = clock.nowMs + 3_000 + chance.pick(12_000); clock.nowMs < untilMs; number++) {
      for (const each of agents)
        void refresh(world, new Process(world, `agent-${each}-again-${number}`, 'agent'), each);
      await clock.wait(300 + chance.pick(1_000));
    }
  }
}
