import { beforeEach, expect, test } from '@jest/globals';
import { fromBits, hasBit } from '../../lib/allocator/snapshot-bytes.ts';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import type { Hold } from '../../lib/range/hold.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import type { ClusterConnections } from '../../lib/runtime/cluster-connections.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import { readRange, saveRange } from '../../lib/table/ranges.ts';
import { aProcess } from '../support/a-process.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { anAccess } from '../support/an-access.ts';
import { failure, startFaultServer } from '../support/api-fault-server.ts';
import { aDispatchWorld, type DispatchWorld } from '../support/dispatch-world.ts';
import { found } from '../support/found.ts';
import { storedRange } from '../support/ranges.ts';

const RANGE = '10.0.0.0/24';
/** The bit of the address 10.0.0.9. */
const BIT = 8;
const INTERVAL_MS = 180_000;

/** Starts an API server that lists the Services in `services`, or refuses the credential. */
async function anApiServer() {
  const state = { services: [] as string[], refuses: false };
  const server = await startFaultServer(({ path }) => {
    if (state.refuses) return failure(401, 'Unauthorized');
    if (!path.startsWith('/api/v1/services')) return failure(404, 'NotFound');
    const items = state.services.map((clusterIP, index) => ({
      metadata: { namespace: 'shop', name: `web-${index}`, uid: `uid-${index}` },
      spec: { type: 'ClusterIP', clusterIP, clusterIPs: [clusterIP], ports: [{ port: 80 }] },
    }));
    return { body: { kind: 'ServiceList', apiVersion: 'v1', metadata: { resourceVersion: '1' }, items } };
  });
  afterThisTest(server.stop);
  return Object.assign(state, { url: server.url });
}

type AnApiServer = Awaited<ReturnType<typeof anApiServer>>;

let before: AnApiServer;
let after: AnApiServer;
/** Returns the API server that the stored kubeconfig names. */
let named: () => AnApiServer;
let reads: number;
let connections: ClusterConnections;
let world: DispatchWorld;

beforeEach(async () => {
  before = await anApiServer();
  after = await anApiServer();
  named = () => before;
  reads = 0;
  world = aDispatchWorld({ connect: (spec, options) => connections.connect(spec, options) });
  connections = newProcess();
  await world.register({ allocator: 'table', kubeconfig: { ssm: '/kubeconfig' }, serviceClusterIPRanges: [RANGE] });
  await pass();
  await pass();
});

function newProcess(): ClusterConnections {
  const load = async () => {
    reads += 1;
    return anAccess({ server: named().url });
  };
  return aProcess(load, { nowMs: () => world.clock.nowMs }).clusters;
}

async function pass(): Promise<string | undefined> {
  await world.dispatch(clusterIpRepair, { force: true });
  world.clock.nowMs += INTERVAL_MS;
  return (await world.recordOf('demo', 'cluster-ip-repair'))?.error?.code;
}

async function stored(): Promise<StoredRange> {
  return found(await readRange(world.table, 'demo', RANGE_KEYS.primary)).stored;
}

/** Allocates the address 10.0.0.9 in the table for a Service that a caller will create. */
async function allocate(holds: readonly Hold[] = []): Promise<void> {
  const read = await readRange(world.table, 'demo', RANGE_KEYS.primary);
  const range = storedRange({ range: RANGE, data: fromBits([BIT]), holds });
  await saveRange(world.table, 'demo', RANGE_KEYS.primary, range, read?.item);
}

const expiredHold = (): Hold => {
  return { items: ['10.0.0.9'], owner: 'shop', takenUpBy: 'any', untilMs: world.clock.nowMs - 60_000 };
};

const isTaken = async () => hasBit((await stored()).data, BIT);

/**
 * Moves the control plane. A caller creates a Service with the address in the new control plane, and the former control plane
 * still answers.
 */
function move(): void {
  named = () => after;
  after.services.push('10.0.0.9');
}

test('if only the new control plane has a Service, a repair pass keeps the address of that Service', async () => {
  await allocate();
  move();
  const codes: (string | undefined)[] = [];
  for (let passes = 0; passes < 120; passes += 1) {
    codes.push(await pass());
    expect({ passes, taken: await isTaken() }).toEqual({ passes, taken: true });
  }
  expect(codes.slice(0, 5)).toEqual([undefined, undefined, 'ControlPlaneMoved', undefined, undefined]);
  expect(reads).toBe(2);
});

test('a repair pass resets the strikes of a leak only once, although one of two warm processes still uses the former control plane', async () => {
  await allocate();
  await pass();
  const [former, current] = [connections, newProcess()];
  named = () => after;
  const codes: (string | undefined)[] = [];
  while (codes.length < 12 && (await isTaken())) {
    connections = codes.length % 2 === 0 ? current : former;
    codes.push(await pass());
  }
  expect(codes).toEqual([undefined, 'ControlPlaneMoved', undefined, undefined]);
});

test('after three intervals without a repair, a Service list of the former control plane does not open allocation again', async () => {
  world.clock.nowMs += 3 * INTERVAL_MS;
  move();
  expect([await pass(), await isTaken()]).toEqual(['ControlPlaneMoved', false]);
  expect([await pass(), await isTaken()]).toEqual([undefined, true]);
});

test('a repair pass does not initialise a missing range from a Service list of the former control plane', async () => {
  world.table.remove('demo', RANGE_KEYS.primary);
  move();
  const outcome = [await pass(), await readRange(world.table, 'demo', RANGE_KEYS.primary)];
  expect(outcome).toEqual(['ControlPlaneMoved', undefined]);
  expect([await pass(), await isTaken()]).toEqual([undefined, true]);
});

test('if a credential is refused and the new kubeconfig leads to another control plane, a repair pass frees nothing', async () => {
  await allocate([expiredHold()]);
  before.refuses = true;
  named = () => after;
  expect([await pass(), await isTaken()]).toEqual(['ControlPlaneMoved', true]);
  expect([await pass(), await isTaken()]).toEqual([undefined, false]);
});

test('a repair pass with an old kubeconfig reads the kubeconfig again only before it frees an item', async () => {
  await allocate();
  expect([reads, await pass(), await pass(), reads]).toEqual([1, undefined, undefined, 1]);
  expect([await pass(), await isTaken(), reads]).toEqual([undefined, false, 2]);
});

test('if an old kubeconfig cannot be read again, a repair pass frees no item, and still records the claims of Services', async () => {
  await allocate([expiredHold()]);
  before.services.push('10.0.0.20');
  named = () => {
    throw new ClusterError('Throttled', 'too many reads');
  };
  expect([await pass(), await isTaken(), hasBit((await stored()).data, 19)]).toEqual(['Throttled', true, true]);
  named = () => before;
  expect([await pass(), await isTaken()]).toEqual([undefined, false]);
});
