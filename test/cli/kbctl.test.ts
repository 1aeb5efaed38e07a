import { afterAll, beforeAll, describe, jest } from '@jest/globals';
import { startTableServer, type TableServer } from '../../local/table-server.ts';
import { describeKbctl } from '../contract/kbctl-suites.ts';

// Each command is a process of its own, on a machine that does other things.
jest.setTimeout(60_000);

describe('kbctl, on dynalite', () => {
  let server: TableServer;

  beforeAll(async () => {
    server = await startTableServer();
  });

  afterAll(async () => {
    await server.close();
  });

  describeKbctl(() => server.endpoint);
});
