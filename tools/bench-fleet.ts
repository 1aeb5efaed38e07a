// Models fleets of 100, 1,000 and 10,000 clusters on a virtual clock, one of ten of which gives no answer: npm run bench:fleet
// Passes and dispatch are the real ones, the table is in memory. Prints the rows for docs/performance.md.
// npm run bench:fleet -- loopback: 400 clusters in real time over loopback, for three minutes; loopback 100 1000: other fleets.
import { concurrencyFor } from '../lib/dispatch/plan-ticks.ts';
import { parseKubeconfig } from '../lib/kubernetes/kubeconfig.ts';
import { CONCURRENT_PASSES } from '../lib/runtime/budgets.ts';
import { listen } from '../local/stand-in/api-servers.ts';
import { kubeconfigOf } from '../local/stand-in/identity.ts';
import { aFleet, type MinuteFigures, quantile, realClock, VirtualClock } from '../test/support/fleet-model.ts';
import { startSilentServer } from '../test/support/silent-server.ts';
import { IDENTITY, readyStandIn } from '../test/support/stand-in.ts';

const START_MS = Date.parse('2026-01-01T12:00:00Z');
/** By then processes know most of the kubeconfigs. */
const MINUTES = 8;
const [mode, ...sizes] = process.argv.slice(2);

if (mode === 'loopback') await loopback(sizes.length === 0 ? [400] : sizes.map(Number));
else for (const size of mode === undefined ? [100, 1_000, 10_000] : [mode, ...sizes].map(Number)) await model(size);

async function model(size: number): Promise<void> {
  const slots = concurrencyFor(size, CONCURRENT_PASSES);
  const fleet = await aFleet({ names: namesOf(size), slots, clock: new VirtualClock(START_MS), ramp: true });
  const { kubeconfigReads } = await fleet.minute();
  for (let minute = 2; minute < MINUTES; minute += 1) await fleet.minute();
  console.log(row(size, slots, kubeconfigReads, await fleet.minute()));
}

/** Clusters in real time: nine of ten have one stand-in as API server, the others one that accepts connections and gives no answer. */
async function loopback(fleets: readonly number[]): Promise<never> {
  const [server, silent] = [await listen(await readyStandIn(), IDENTITY), await startSilentServer()];
  const accessTo = (url: string) => parseKubeconfig(kubeconfigOf('fleet', url, IDENTITY), 'of the benchmark');
  const servers = { alive: await accessTo(server.url), dead: await accessTo(`https://${silent.authority}`) };
  for (const size of fleets) {
    const slots = concurrencyFor(size, CONCURRENT_PASSES);
    const fleet = await aFleet({ names: namesOf(size), slots, clock: realClock, servers });
    for (let minute = 1; minute <= 3; minute += 1) console.log(minuteRow(size, minute, await fleet.minute()));
  }
  process.exit();
}

function minuteRow(size: number, minute: number, { latenessMs, dropped }: MinuteFigures): string {
  const lateness = `${quantile(latenessMs, 0.5)} / ${quantile(latenessMs, 0.99)} ms`;
  const memory = `${Math.round(process.memoryUsage().rss / 2 ** 20)} MB`;
  return `${size} clusters, minute ${minute}: lateness p50 / p99 ${lateness}, ${dropped} messages dropped, ${latenessMs.length} ticks, ${memory}`;
}

function namesOf(size: number): string[] {
  return Array.from({ length: size }, (_, index) => `c-${String(index).padStart(5, '0')}`);
}

function row(size: number, slots: number, firstReads: number, figures: MinuteFigures): string {
  const { latenessMs, dropped, reads, writes, kubeconfigReads } = figures;
  const seconds = (count: number) => (count / 60).toFixed(count < 600 ? 1 : 0);
  const cells = [
    size,
    slots,
    `${quantile(latenessMs, 0.5)} / ${quantile(latenessMs, 0.99)}`,
    dropped,
    seconds(reads['#clusters']),
    seconds(reads['of clusters']),
    seconds(writes['of clusters']),
    `${seconds(firstReads)}, then ${seconds(kubeconfigReads)}`,
    Math.round(process.memoryUsage().heapUsed / 2 ** 20 / slots),
  ];
  return `| ${cells.join(' | ')} |`;
}
