import { afterAll, beforeAll, describe } from '@jest/globals';
import { type KbctlWorld, openKbctlWorld } from '../support/kbctl-world.ts';
import { describeClusterApply } from './kbctl-cluster-apply.ts';
import { describeClusterChanges } from './kbctl-cluster-changes.ts';
import { describeClusterGet } from './kbctl-cluster-get.ts';
import { describePause } from './kbctl-pause.ts';
import { describeRanges } from './kbctl-ranges.ts';
import { describeStatus } from './kbctl-status.ts';

/** Every command as a process, each suite in a world of its own. */
const SUITES: readonly ((world: () => KbctlWorld) => void)[] = [
  describeClusterGet,
  describeClusterApply,
  describeClusterChanges,
  describePause,
  describeStatus,
  describeRanges,
];

/** @param endpoint where the tables are; asked once the tests run. */
export function describeKbctl(endpoint: () => string): void {
  for (const suite of SUITES) {
    describe('in a world of its own', () => {
      let world: KbctlWorld;

      beforeAll(async () => {
        world = await openKbctlWorld(endpoint());
      });

      afterAll(async () => {
        await world?.close();
      });

      suite(() => world);
    });
  }
}
