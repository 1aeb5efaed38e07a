import { readdirSync } from 'node:fs';
import { expect, jest, test } from '@jest/globals';
import { bitsOf } from '../../lib/allocator/snapshot-bytes.ts';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import { readRange } from '../../lib/table/ranges.ts';
import { startBehindProxies } from '../soak/behind-proxies.ts';
import type { ChaosProxy } from '../support/chaos-proxy.ts';
import { pickedFault } from '../support/fault-proxy.ts';
import { found } from '../support/found.ts';
import { CLUSTER, runAllLoops } from '../support/handlers.ts';
import { published } from '../support/kubernetes-service-objects.ts';
import { seededPick } from '../support/ranges.ts';
import { running } from '../support/running.ts';
import { runningControlPlane, SERVICES } from './running-control-plane.ts';

/* Passes run while connections to a real API server break in every way. `npm run soak` runs this test for ten minutes. */

const MINUTES = Number(process.env['SOAK_MINUTES'] ?? 0.5);
const [FIRST, SECOND] = ['10.9.8.7', '10.9.8.8'];
/**
 * The time after which a dead server must be removed. It is longer than a lease of 15 s and two misses, because passes fail, and
 * a miss does not count while no address answers.
 */
const REMOVED_WITHIN_MS = 90_000;
/** The time between two rounds by the clock of the handlers, in addition to the duration of a round. */
const ROUND_MS = 5_000;
jest.setTimeout((MINUTES + 3) * 60_000);

const { apiserver } = runningControlPlane();
const pick = seededPick(Number(process.env['SOAK_SEED'] ?? 1));
const started = running(() => startBehindProxies(apiserver, [FIRST, SECOND], pick));

const openFiles = (): number => readdirSync('/proc/self/fd').length;

async function changeServices(names: string[]): Promise<void> {
  if (names.length > 20 || (names.length > 0 && pick(3) === 0)) {
    await apiserver.request('DELETE', `${SERVICES}/${names.splice(pick(names.length), 1)[0]}`);
    return;
  }
  const name = `s-${pick(1e9)}`;
  await apiserver.send('POST', SERVICES, { metadata: { name }, spec: { ports: [{ port: 80 }] } });
  names.push(name);
}

async function claimed(): Promise<string[]> {
  const { body } = await apiserver.request<{ items: { spec: { clusterIP: string } }[] }>('GET', '/api/v1/services');
  return body.items.map(({ spec }) => spec.clusterIP).filter((address) => address !== 'None');
}

/** Stops or restores the second API server every two minutes by the clock of the handlers. The first call stops it. */
function dieAndReturn(second: ChaosProxy, nowMs: number): void {
  if (nowMs < life.sinceMs + 120_000) return;
  Object.assign(life, { isDown: !life.isDown, sinceMs: nowMs, deaths: life.deaths + (life.isDown ? 0 : 1) });
  second.down(life.isDown);
}

const life = { isDown: false, sinceMs: Number.NEGATIVE_INFINITY, deaths: 0, deadRounds: 0 };

/** Checks the conditions that must hold after each round, whatever faults occurred in it. */
async function checkRound(round: number, nowMs: number): Promise<void> {
  const addresses = await claimed();
  expect({ round, addresses: addresses.toSorted() }).toEqual({ round, addresses: [...new Set(addresses)].toSorted() });
  const isOverdue = life.isDown && nowMs > life.sinceMs + REMOVED_WITHIN_MS;
  if (isOverdue) life.deadRounds += 1;
  for (const [where, shown] of Object.entries(await published(apiserver))) {
    expect({ round, where, isEmpty: shown.length === 0 }).toEqual({ round, where, isEmpty: false });
    if (isOverdue) expect({ round, where, shown }).toEqual({ round, where, shown: [FIRST] });
  }
}

test('passes over broken connections never empty the endpoints, remove dead addresses in time, allocate no address twice, and leave no files open', async () => {
  const { handlers, tableProxy, proxies } = started;
  const [proxy, second] = proxies as [ChaosProxy, ChaosProxy];
  await runAllLoops(handlers);
  const filesBefore = openFiles();
  let aheadMs = 0;
  const endsAtMs = Date.now() + MINUTES * 60_000;
  const names: string[] = [];
  let [rounds, failed, tableFaults] = [0, 0, 0];
  proxy.faults(3);
  while (Date.now() < endsAtMs) {
    dieAndReturn(second, Date.now() + aheadMs);
    await changeServices(names);
    for (const operation of ['GetItem', 'PutItem']) {
      if (pick(2) > 0) continue;
      tableProxy.plan(operation, pickedFault(pick));
      tableFaults += 1;
    }
    for (const loop of LOOPS) failed += (await handlers.run(loop)).summary.failed;
    rounds += 1;
    await checkRound(rounds, Date.now() + aheadMs);
    aheadMs += ROUND_MS;
    handlers.advance(ROUND_MS);
  }
  second.down(false);
  proxy.faults(0);
  for (let pass = 0; pass < 4; pass++) {
    handlers.advance(180_000);
    for (const { errors } of await runAllLoops(handlers)) expect({ pass, errors }).toEqual({ pass, errors: [] });
  }
  expect(await published(apiserver)).toEqual({ endpoints: [FIRST, SECOND], slice: [FIRST, SECOND] });
  const addresses = await claimed();
  expect(new Set(addresses).size).toBe(addresses.length);
  const { stored } = found(await readRange(handlers.table, CLUSTER, RANGE_KEYS.primary));
  const bits = addresses.map((address) => Number(address.split('.').at(-1)) - 1);
  expect([...bitsOf(stored.data)].toSorted((a, b) => a - b)).toEqual(bits.toSorted((a, b) => a - b));
  expect(openFiles()).toBeLessThan(filesBefore + 20);
  const figures = {
    rounds,
    passes: rounds * 4,
    failed,
    faults: proxy.counts,
    tableFaults,
    deaths: life.deaths,
    roundsAfterRemoval: life.deadRounds,
    files: [filesBefore, openFiles()],
  };
  process.stderr.write(`soak: ${JSON.stringify(figures)}\n`);
});
