import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import type { ChaosProxy } from '../support/chaos-proxy.ts';
import { startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { type FaultProxy, pickedFault } from '../support/fault-proxy.ts';
import type { Handlers } from '../support/handlers.ts';
import { seededPick } from '../support/ranges.ts';
import { startBehindProxies } from './behind-proxies.ts';
import { growthOf, type Held } from './growth.ts';

/* Runs ticks without pauses, half of them with faults, and measures the resources of the process after each tenth. */

const { values } = parseArgs({
  options: {
    ticks: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
    /** What each tick leaks. `socket`: an open connection. `memory`: 10 kB of heap. `buffer`: 10 kB outside the heap. */
    plant: { type: 'string', default: 'none' },
  },
});
const SAMPLES = 10;
const ROUNDS_PER_HALF = Math.ceil(Number(values.ticks) / SAMPLES / 2 / LOOPS.length);
/** In the half of the ticks with faults, one connection to the API server in `EVERY` is broken. */
const EVERY = 5;
const pick = seededPick(Number(values.seed));

async function heldNow(): Promise<Held> {
  const { gc } = globalThis;
  if (gc === undefined) throw new Error('Cannot measure the heap: start node with --expose-gc');
  for (let turn = 0; turn < 3; turn++) {
    gc();
    await sleep(20);
  }
  const [, anonKb] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  const { heapUsed } = process.memoryUsage();
  const inMb = (bytes: number) => Math.round(bytes / 1e5) / 10;
  const files = readdirSync('/proc/self/fd').map(targetOf);
  const sockets = files.filter((target) => target.startsWith('socket:')).length;
  return { heapMb: inMb(heapUsed), anonMb: inMb(Number(anonKb) * 1024), sockets, files: files.length };
}

/** Returns the target of a file descriptor. The descriptor with which the folder was read is already closed. */
function targetOf(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return '';
  }
}

const leaked: { readonly sockets: Socket[]; readonly kept: (string | Buffer)[] } = { sockets: [], kept: [] };

function leak(tableEndpoint: string): void {
  if (values.plant === 'memory') leaked.kept.push(randomBytes(5_000).toString('hex'));
  if (values.plant === 'buffer') leaked.kept.push(randomBytes(10_000));
  if (values.plant !== 'socket') return;
  const port = Number(new URL(tableEndpoint).port);
  leaked.sockets.push(connect(port, '127.0.0.1').on('error', () => {}));
}

async function tickAll(handlers: Handlers, tableProxy: FaultProxy, withFaults: boolean): Promise<number> {
  if (withFaults && pick(2) === 0) {
    const operation = pick(2) === 0 ? 'GetItem' : 'PutItem';
    tableProxy.plan(operation, pickedFault(pick));
  }
  // An invocation that cannot read the cluster list rejects, and its schedule invokes the next one.
  const settled = await Promise.allSettled(LOOPS.map((loop) => handlers.run(loop)));
  const invoked = settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  for (const _ of LOOPS) leak(tableProxy.endpoint);
  // The proxy keeps a list of all requests.
  tableProxy.operations.length = 0;
  handlers.advance(2_000);
  return LOOPS.length - invoked.filter(({ summary }) => summary.failed === 0).length;
}

type Loopback = Awaited<ReturnType<typeof startLoopback>>;

/** Starts a real API server and a table, each behind its proxy, and the handlers over them. */
async function startLoopback(stack: AsyncDisposableStack) {
  const etcd = await startEtcd();
  stack.defer(() => etcd.close());
  const apiserver = await startKubeApiserver({ etcd });
  const { proxies, close, ...started } = await startBehindProxies(apiserver, ['10.9.8.7'], pick);
  stack.defer(close);
  return { ...started, proxy: proxies[0] as ChaosProxy };
}

/** Runs a tenth of the ticks, half of them with faults, then half without. Without faults, leaked sockets stay open. */
async function runTenth({ proxy, tableProxy, handlers }: Loopback): Promise<number> {
  let failed = 0;
  for (const every of [EVERY, 0]) {
    proxy.faults(every);
    for (let round = 0; round < ROUNDS_PER_HALF; round++) failed += await tickAll(handlers, tableProxy, every > 0);
  }
  return failed;
}

const seconds = (): number => Math.round(performance.now() / 1_000);

async function main(): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const loopback = await startLoopback(stack);
  const samples: Held[] = [];
  let failed = 0;
  while (samples.length < SAMPLES) {
    failed += await runTenth(loopback);
    const held = await heldNow();
    samples.push(held);
    console.log(
      JSON.stringify({
        ticks: samples.length * ROUNDS_PER_HALF * 2 * LOOPS.length,
        failed,
        seconds: seconds(),
        ...held,
      }),
    );
  }
  console.log(`connection faults: ${JSON.stringify(loopback.proxy.counts)}`);
  const growth = growthOf(samples);
  for (const line of growth) console.error(line);
  process.exitCode = growth.length > 0 ? 1 : 0;
  for (const socket of leaked.sockets) socket.destroy();
}

await main();
