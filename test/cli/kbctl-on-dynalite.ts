import { describe } from '@jest/globals';
import { describeKbctl, type SuiteGroup } from '../contract/kbctl-suites.ts';
import { runningTableServer } from '../support/running-table-server.ts';

export function describeOnDynalite(group: SuiteGroup): void {
  describe(`kbctl and ${group}, on dynalite`, () => {
    const server = runningTableServer();
    describeKbctl(group, () => server.endpoint);
  });
}
