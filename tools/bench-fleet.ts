// Models fleets of 100, 1,000 and 10,000 clusters on a virtual clock, one of ten of which gives no answer: npm run bench:fleet
// Passes and dispatch are the real ones, the table is in memory. Prints the rows for docs/performance.md.
import { concurrencyFor } from '../lib/dispatch/ticks.ts';
import { CONCURRENT_PASSES } from '../lib/runtime/budgets.ts';
import { FleetModel, type MinuteFigures, quantile, VirtualClock } from '../test/support/fleet-model.ts';

const START_MS = Date.parse('2026-01-01T12:00:00Z');
/** By then processes know most of the kubeconfigs. */
const MINUTES = 8;

for (const size of [100, 1_000, 10_000]) {
  const slots = concurrencyFor(size, CONCURRENT_PASSES);
  const names = Array.from({ length: size }, (_, index) => `c-${String(index).padStart(5, '0')}`);
  const fleet = new FleetModel({ names, slots, clock: new VirtualClock(START_MS) });
  for (const name of names) if (name.endsWith('7')) fleet.dead.add(name);
  await fleet.register();
  const { kubeconfigReads } = await fleet.minute();
  for (let minute = 2; minute < MINUTES; minute += 1) await fleet.minute();
  console.log(row(size, slots, kubeconfigReads, await fleet.minute()));
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
