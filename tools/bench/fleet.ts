// Measures fleets on a virtual clock, with real passes and dispatch. One of ten clusters gives no answer.
import { concurrencyFor } from '../../lib/dispatch/ticks.ts';
import { CONCURRENT_PASSES } from '../../lib/runtime/deadline.ts';
import { aFleet, quantile } from '../../test/support/fleet-model.ts';

/** The measured minute is the eighth, because the processes have then read most of the kubeconfigs. */
const MINUTES = 8;

/** Returns the figures of a fleet, per second unless their name contains another unit. */
export async function fleetRow(size: number): Promise<Record<string, string | number>> {
  const names = Array.from({ length: size }, (_, index) => `c-${String(index).padStart(5, '0')}`);
  const slots = concurrencyFor(size, CONCURRENT_PASSES);
  const fleet = await aFleet({ names, slots, ramp: true });
  const { kubeconfigReads: firstReads } = await fleet.minute();
  for (let minute = 2; minute < MINUTES; minute += 1) await fleet.minute();
  const { latenessMs, dropped, reads, writes, kubeconfigReads } = await fleet.minute();
  const aSecond = (count: number) => Number((count / 60).toPrecision(2));
  return {
    clusters: size,
    processes: slots,
    'lateness p50 / p99 ms': `${quantile(latenessMs, 0.5)} / ${quantile(latenessMs, 0.99)}`,
    'messages dropped a minute': dropped,
    'reads of #clusters': aSecond(reads['#clusters']),
    'other reads': aSecond(reads['of clusters']),
    writes: aSecond(writes['of clusters']),
    'kubeconfig reads, first and eighth minute': `${aSecond(firstReads)}, ${aSecond(kubeconfigReads)}`,
  };
}
