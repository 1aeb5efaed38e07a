import { afterAll, describe, expect } from '@jest/globals';
import { describeAllocate } from '../contract/kbctl-allocate.ts';
import { describeClock } from '../contract/kbctl-clock.ts';
import { describeClusterApply } from '../contract/kbctl-cluster-apply.ts';
import { describeClusterChanges } from '../contract/kbctl-cluster-changes.ts';
import { describeClusterGet } from '../contract/kbctl-cluster-get.ts';
import { describeDeregister } from '../contract/kbctl-deregister.ts';
import { describeDoctor } from '../contract/kbctl-doctor.ts';
import { describeHeartbeat } from '../contract/kbctl-heartbeat.ts';
import { describePause } from '../contract/kbctl-pause.ts';
import { describeRanges } from '../contract/kbctl-ranges.ts';
import { describeRunOnce } from '../contract/kbctl-run-once.ts';
import { describeShow } from '../contract/kbctl-show.ts';
import { describeStatus } from '../contract/kbctl-status.ts';
import { startCallRecorder } from '../deploy/emulator-calls.ts';
import { notGranted, shippedPolicy } from '../support/emulator-policy.ts';
import { kbctlWorlds } from '../support/kbctl-world.ts';
import { running } from '../support/running.ts';
import { runningTableServer } from '../support/running-table-server.ts';

const SUITES = [
  ...[describeClusterGet, describeClusterApply, describeClusterChanges, describePause],
  ...[describeStatus, describeShow, describeDoctor, describeRanges, describeAllocate, describeRunOnce],
  ...[describeHeartbeat, describeDeregister, describeClock],
];

const server = runningTableServer();
const recorder = running(() => startCallRecorder(server.endpoint, { host: new URL(server.endpoint).host }));

for (const suite of SUITES) describe('kbctl', () => suite(kbctlWorlds(() => recorder.endpoint)));

// The policy of operators grants every call of kbctl.
afterAll(() => {
  // The tests create their tables themselves, and some name a table that does not exist.
  const made = recorder.calls.filter(({ action, resource }) => !/CreateTable|no-such-table/.test(action + resource));
  expect(made.length).toBeGreaterThan(0);
  expect(notGranted(made, shippedPolicy('operator').Statement)).toEqual([]);
});
