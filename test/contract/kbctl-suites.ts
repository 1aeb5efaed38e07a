import { afterAll, beforeAll, describe } from '@jest/globals';
import { type KbctlWorld, openKbctlWorld } from '../support/kbctl-world.ts';
import { describeAllocate } from './kbctl-allocate.ts';
import { describeClock } from './kbctl-clock.ts';
import { describeClusterApply } from './kbctl-cluster-apply.ts';
import { describeClusterChanges } from './kbctl-cluster-changes.ts';
import { describeClusterGet } from './kbctl-cluster-get.ts';
import { describeDeregister } from './kbctl-deregister.ts';
import { describeDoctor } from './kbctl-doctor.ts';
import { describeHeartbeat } from './kbctl-heartbeat.ts';
import { describePause } from './kbctl-pause.ts';
import { describeRanges } from './kbctl-ranges.ts';
import { describeRunOnce } from './kbctl-run-once.ts';
import { describeShow } from './kbctl-show.ts';
import { describeStatus } from './kbctl-status.ts';

type Suite = (world: () => KbctlWorld) => void;

const SUITES = {
  clusters: [describeClusterGet, describeClusterApply, describeClusterChanges, describePause],
  looking: [describeStatus, describeShow, describeDoctor],
  ranges: [describeRanges, describeAllocate, describeRunOnce],
  'API servers': [describeHeartbeat, describeDeregister, describeClock],
} satisfies Readonly<Record<string, readonly Suite[]>>;

export type SuiteGroup = keyof typeof SUITES;

/** @param endpoint returns the endpoint of the tables, once tests run */
export function describeKbctl(group: SuiteGroup, endpoint: () => string): void {
  describe.each(SUITES[group].map((suite: Suite) => ({ suite })))('with a new table and API server', ({ suite }) => {
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
