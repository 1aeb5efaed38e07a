import { afterAll, beforeAll, describe, jest } from '@jest/globals';
import { startTableServer, type TableServer } from '../../local/table-server.ts';
import { type KbctlWorld, openKbctlWorld } from '../support/kbctl-world.ts';
import { describeDeregister } from '../contract/kbctl-deregister.ts';
import { describeDoctor } from '../contract/kbctl-doctor.ts';
import { describeHeartbeat } from '../contract/kbctl-heartbeat.ts';
import { describeRepair } from '../contract/kbctl-repair.ts';
jest.setTimeout(60_000);
for (const suite of [describeDeregister, describeHeartbeat]) describe('mine', () => {
  let server: TableServer;
  let world: KbctlWorld;
  beforeAll(async () => { server = await startTableServer(); world = await openKbctlWorld(server.endpoint); });
  afterAll(async () => { await world?.close(); await server.close(); });
  suite(() => world);
});
