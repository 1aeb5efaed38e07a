import { concurrencyFor } from '../../lib/dispatch/ticks.ts';
import { CONCURRENT_PASSES } from '../../lib/runtime/deadline.ts';
import { aFleet } from '../../test/support/fleet-model.ts';
const size = 10000;
const names = Array.from({ length: size }, (_, index) => `c-${String(index).padStart(5, '0')}`);
const fleet = await aFleet({ names, slots: concurrencyFor(size, CONCURRENT_PASSES), ramp: true });
for (let m = 1; m <= 60; m++) { const { kubeconfigReads } = await fleet.minute(); console.log(m, (kubeconfigReads/60).toFixed(0), new Date().toISOString()); }
