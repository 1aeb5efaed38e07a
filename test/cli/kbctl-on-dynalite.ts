import { describe, expect, test } from '@jest/globals';
import { describeKbctl, type SuiteGroup } from '../contract/kbctl-suites.ts';
import { startCallRecorder } from '../deploy/emulator-calls.ts';
import { notGranted, shippedPolicy } from '../support/emulator-policy.ts';
import { running } from '../support/running.ts';
import { runningTableServer } from '../support/running-table-server.ts';

export function describeOnDynalite(group: SuiteGroup): void {
  describe(`kbctl and ${group}, on dynalite`, () => {
    const server = runningTableServer();
    const recorder = running(() => startCallRecorder(server.endpoint, { host: new URL(server.endpoint).host }));
    describeKbctl(group, () => recorder.endpoint);

    test('the policy of operators grants every call of kbctl', () => {
      // The tests create their tables themselves, and some name a table that does not exist.
      const made = recorder.calls.filter(
        ({ action, resource }) => !/CreateTable|no-such-table/.test(action + resource),
      );
      expect(made.length).toBeGreaterThan(20);
      expect(notGranted(made, shippedPolicy('operator').Statement)).toEqual([]);
    });
  });
}
