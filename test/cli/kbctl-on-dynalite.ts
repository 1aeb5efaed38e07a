import { afterAll, beforeAll, describe } from '@jest/globals';
import { startTableServer, type TableServer } from '../../local/table-server.ts';
import { describeKbctl, type SuiteGroup } from '../contract/kbctl-suites.ts';

export function describeOnDynalite(group: SuiteGroup): void {
  describe(`kbctl and ${group}, on dynalite`, () => {
    let server: TableServer;

    beforeAll(async () => {
      server = await startTableServer({ key: 'test' });
    });

    afterAll(async () => {
      await server.close();
    });

    describeKbctl(group, () => server.endpoint);
  });
}
