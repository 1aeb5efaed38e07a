import { describe, expect, test } from '@jest/globals';
import { describeKbctl, SUITE_GROUPS } from '../contract/kbctl-suites.ts';
import { notGranted, shippedPolicy } from '../support/emulator-policy.ts';
import { running } from '../support/running.ts';
import { startEmulator } from './emulator.ts';

describe('kbctl on an emulator of AWS', () => {
  const emulator = running(startEmulator);

  describe.each(SUITE_GROUPS)('%s', (group) => {
    describeKbctl(group, () => emulator.recorder.endpoint);
  });

  test('the policy of operators grants every call of kbctl', () => {
    const { Statement } = shippedPolicy('operator');
    // Calls that the policy does not have to allow are omitted: those that create the tables of the tests, and those to a table
    // that does not exist.
    const made = emulator.recorder.calls.filter(
      ({ action, resource }) => !/CreateTable|no-such-table/.test(action + resource),
    );
    expect(made.length).toBeGreaterThan(100);
    expect(notGranted(made, Statement)).toEqual([]);
  });
});
