import { beforeAll, describe, expect, test } from '@jest/globals';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { specIn } from '../support/a-cluster-spec.ts';
import { CLUSTER, type KbctlWorld } from '../support/kbctl-world.ts';

/** Where the commands look: at dynalite, or at an emulator of AWS. */
export type GetWorld = () => KbctlWorld;

export function describeClusterGet(world: GetWorld): void {
  describe('kbctl cluster get and list', () => {
    beforeAll(async () => {
      await registerCluster(world().table, specIn(world().spec()));
    });

    test('list what is registered', async () => {
      expect(await world().kbctl(['cluster', 'get'])).toEqual({
        code: 0,
        stdout: [
          'NAME        MODE      ALLOCATOR   GENERATION   OWNER    PAUSED',
          'prod-eu-1   enforce   table       1            <none>',
          '',
        ].join('\n'),
        stderr: '',
      });
    });

    test('print a whole spec as JSON', async () => {
      const { code, stdout } = await world().kbctl(['cluster', 'get', CLUSTER, '-o', 'json']);
      expect(code).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({
        apiVersion: 'kbctl/v1',
        kind: 'Cluster',
        name: CLUSTER,
        generation: 1,
        spec: { mode: 'enforce', serviceClusterIPRanges: ['10.0.0.0/24'] },
      });
    });

    test.each([
      ['one', [CLUSTER]],
      ['all', []],
    ])('print registrations, of %s, that change nothing when they are applied again', async (_, names) => {
      for (const format of ['yaml', 'json']) {
        const { stdout } = await world().kbctl(['cluster', 'get', ...names, '-o', format]);
        const applied = await world().kbctl(['cluster', 'apply', '-f', '-', '--dry-run'], { stdin: stdout });
        expect(applied).toMatchObject({ code: 0, stdout: expect.stringContaining('unchanged'), stderr: '' });
      }
    });

    test('name the nearest cluster for one that is not registered', async () => {
      expect(await world().kbctl(['cluster', 'get', 'prod-eu'])).toEqual({
        code: 3,
        stdout: '',
        stderr: 'error: Cluster "prod-eu" not found. Did you mean prod-eu-1?\n',
      });
    });

    test('print what to do when the table does not answer', async () => {
      const env = { AWS_ENDPOINT_URL: 'http://127.0.0.1:1' };
      const { code, stderr } = await world().kbctl(['cluster', 'get'], { env });
      expect({ code, stderr }).toEqual({ code: 5, stderr: expect.stringContaining('run the command again') });
    });

    test('report that the table does not exist', async () => {
      const { code, stderr } = await world().kbctl(['cluster', 'get', '--table', 'no-such-table']);
      expect({ code, stderr }).toEqual({
        code: 5,
        stderr: expect.stringContaining('Table "no-such-table" was not found'),
      });
    });
  });
}
