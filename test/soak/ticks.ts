import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import type { ChaosProxy } from '../support/chaos-proxy.ts';
import { startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { type FaultProxy, pickedFault } from '../support/fault-proxy.ts';
import type { Handlers } from '../support/handlers.ts';
import { seededPick } from '../support/ranges.ts';
import { startBehindProxies } from './behind-proxies.ts';

/* Runs ticks without pauses, half of them with faults, and measures the resources of the process after each tenth. */

const { values } = parseArgs({
  options: {
    ticks: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
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

/** The resources that a process holds at one time. */
interface Held {
  readonly heapMb: number;
  /** The part of RSS that no file backs. Pages of program files come and go with the page cache. */
  readonly anonMb: number;
  readonly sockets: number;
  /** The number of open file descriptors, sockets included. */
  readonly files: number;
}

/**
 * The most by which each resource may grow in the second half of a run. A leak of 500 bytes per tick in the heap, or of 2 kB
 * outside it, exceeds this. The young generation can grow by 55 MB at any time, so `npm run soak:ticks` keeps it at 12 MB.
 */
const MARGINS: Held = { heapMb: 2.5, anonMb: 10, sockets: 30, files: 30 };

/** The limits at any time. A server closes idle connections, so leaked ones stop growing at some number. */
const LIMITS: Partial<Held> = { sockets: 120, files: 160 };

/** Returns a sentence for each resource that grew too much over the last half of the samples or is above its limit. */
function growthOf(samples: readonly Held[]): readonly string[] {
  const half = samples[Math.ceil(samples.length / 2) - 1];
  const last = samples.at(-1);
  if (half === undefined || last === undefined) return [];
  return (Object.keys(MARGINS) as (keyof Held)[]).flatMap((name) => {
    const grown = last[name] - half[name];
    const most = Math.max(...samples.map((sample) => sample[name]));
    const limit = LIMITS[name] ?? Number.POSITIVE_INFINITY;
    return [
      ...(grown > MARGINS[name] ? [`${name} grew by ${grown.toFixed(1)}; ${MARGINS[name]} are allowed`] : []),
      ...(most > limit ? [`${name} reached ${most}; ${limit} are allowed`] : []),
    ];
  });
}

async function tickAll(handlers: Handlers, tableProxy: FaultProxy, withFaults: boolean): Promise<number> {
  if (withFaults && pick(2) === 0) {
    const operation = pick(2) === 0 ? 'GetItem' : 'PutItem';
    tableProxy.plan(operation, pickedFault(pick));
  }
  // An invocation that cannot read the cluster list rejects, and its schedule invokes the next one.
  const settled = await Promise.allSettled(LOOPS.map((loop) => handlers.run(loop)));
  const invoked = settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
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
    const ticks = samples.length * ROUNDS_PER_HALF * 2 * LOOPS.length;
    console.log(JSON.stringify({ ticks, failed, seconds: seconds(), ...held }));
  }
  console.log(`connection faults: ${JSON.stringify(loopback.proxy.counts)}`);
  const growth = growthOf(samples);
  for (const line of growth) console.error(line);
  process.exitCode = growth.length > 0 ? 1 : 0;
}

await main();
