import { afterAll, beforeAll, describe, jest } from '@jest/globals';
import { describeKbctl, SUITE_GROUPS } from '../contract/kbctl-suites.ts';
import { type Emulator, startEmulator } from '../support/emulator.ts';

jest.setTimeout(120_000);

describe('kbctl, on an emulator of AWS', () => {
  let emulator: Emulator;

  beforeAll(async () => {
    emulator = await startEmulator();
  });

  afterAll(async () => {
    await emulator?.stop();
  });

  describe.each(SUITE_GROUPS)('%s', (group) => {
    describeKbctl(group, () => emulator.recorder.endpoint);
  });
});
