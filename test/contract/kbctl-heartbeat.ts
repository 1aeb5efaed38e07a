import { expect, test } from '@jest/globals';
import { unregistered, updateCluster } from '../../lib/table/cluster-registration.ts';
import { readLeases } from '../../lib/table/leases.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { eventually } from '../support/eventually.ts';
import { serviceError, startFaultProxy } from '../support/fault-proxy.ts';
import type { RunningKbctl } from '../support/kbctl-process.ts';
import { CLUSTER, failed, type KbctlWorld, type KbctlWorlds, ran } from '../support/kbctl-world.ts';
import { withdraw } from '../support/put-lease.ts';

const OWN = '203.0.113.10';
const OTHER = '203.0.113.20';
const HELD = /203\.0\.113\.10 has a valid lease \(its API server answered 200\)/;

export function describeHeartbeat(worlds: KbctlWorlds): void {
  const world = worlds.each((one) => register(one));
  const heartbeat = (...words: string[]) => world().kbctl(['heartbeat', CLUSTER, ...words]);
  const start = (how: 'start' | 'spawn' = 'start', endpoint?: string): RunningKbctl => {
    const env = endpoint === undefined ? {} : { env: { AWS_ENDPOINT_URL: endpoint } };
    const running = world()[how](['heartbeat', CLUSTER, '--address', OWN, '--every', '1s'], env);
    afterThisTest(() => running.end('SIGKILL'));
    return running;
  };
  const leaseOf = async (address: string) =>
    (await readLeases(world().table, CLUSTER)).leases.find((lease) => lease.address === address);
  const published = () => world().published();

  test('kbctl heartbeat refreshes the lease of its API server, and the loops publish the address of that server', async () => {
    const running = start('spawn');
    await running.untilItPrints(HELD);
    await world().runAllLoops();
    expect((await leaseOf(OWN))?.source).toBe('agent');
    expect(published()).toContain(OWN);
    const first = (await leaseOf(OWN))?.generation ?? 0;
    await eventually(async () => {
      expect((await leaseOf(OWN))?.generation).toBeGreaterThan(first);
    });
    const { code, stdout, stderr } = await running.end('SIGTERM');
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(stderr).toContain(`${CLUSTER}: refreshing the lease of ${OWN} (600s) every 1s until Ctrl-C.\n`);
    expect(stderr).toContain(`Ending: removing ${OWN} from the endpoints.`);
    expect(stderr).toContain(`${OWN} is removed from the endpoints.\n`);
  });

  test('an agent whose standard error is closed still removes its address when it ends, and no tick publishes the address again', async () => {
    const running = world().spawn(['heartbeat', CLUSTER, '--address', OWN, '--every', '1s']);
    afterThisTest(() => running.end('SIGKILL'));
    await running.untilItPrints(HELD);
    await world().runAllLoops();
    expect(published()).toContain(OWN);
    running.child.stderr?.destroy();
    expect(await running.end('SIGTERM')).toMatchObject({ code: 0 });
    expect(published()).not.toContain(OWN);
    expect(await leaseOf(OWN)).toMatchObject({ source: 'agent', seenDown: true });
    await world().runAllLoops();
    expect(published()).not.toContain(OWN);
  });

  test('kbctl heartbeat --once refreshes the lease of an ended agent once, and the loops publish its address again', async () => {
    const running = start();
    await running.untilItPrints(HELD);
    await running.end('SIGTERM');
    expect(await heartbeat('--address', OWN, '--once')).toEqual(ran(0, '', expect.stringMatching(HELD)));
    await world().runAllLoops();
    expect(published()).toContain(OWN);
  });

  test('kbctl heartbeat does not refresh a lease during a withdrawal that an operator requested', async () => {
    const nowMs = Date.now();
    await withdraw(world().table, CLUSTER, { address: OWN, untilMs: nowMs + 3_600_000, nowMs });
    const reason = /203\.0\.113\.10 is withdrawn until \S+Z: its lease is not refreshed before/;
    expect(await heartbeat('--address', OWN, '--once')).toEqual(ran(1, '', expect.stringMatching(reason)));
  });

  test('kbctl heartbeat writes no lease for an API server that does not answer', async () => {
    await world().register({ apiServers: [{ address: OWN, probe: { url: 'http://127.0.0.1:1/readyz' } }] });
    const refused = failed(4, 'its lease expires (its API server gave no answer: ');
    expect(await heartbeat('--address', OWN, '--once')).toEqual(refused);
    expect(await leaseOf(OWN)).toBeUndefined();
  });

  test('kbctl heartbeat probes its API server as the spec says now, not as it said at the start', async () => {
    const running = start();
    await running.untilItPrints(HELD);
    await world().register({ apiServers: [{ address: OWN, probe: { url: 'http://127.0.0.1:1/readyz' } }] });
    await running.untilItPrints(/its lease expires \(its API server gave no answer/);
    await running.end('SIGTERM');
  });

  test('an agent that ends does not promise that its address is removed if the cluster is only observed', async () => {
    await world().runAllLoops();
    await register(world(), { mode: 'observe' });
    const running = start();
    await running.untilItPrints(HELD);
    const { stderr } = await running.end('SIGTERM');
    expect(stderr).toMatch(/is withdrawn, and still published: .* removes it, but none in mode observe/);
  });

  test('kbctl heartbeat reports a table failure once, continues, and reports the recovery', async () => {
    const proxy = await startFaultProxy(world().endpoint);
    afterThisTest(proxy.close);
    const running = start('start', proxy.endpoint);
    await running.untilItPrints(HELD);
    const refused = serviceError(400, 'AccessDeniedException', 'not allowed');
    proxy.plan('GetItem', refused, refused);
    await running.untilItPrints(/The table answers again/);
    const { code, stderr } = await running.end('SIGTERM');
    expect(code).toBe(0);
    expect(stderr.match(/The table does not answer/g)).toHaveLength(1);
  });

  test('kbctl heartbeat ends when the cluster is unregistered', async () => {
    const running = start();
    await running.untilItPrints(HELD);
    await updateCluster(world().table, CLUSTER, unregistered);
    expect(await running.end()).toMatchObject(failed(3, `${CLUSTER} is no longer registered`));
  });

  test('kbctl heartbeat ends when the clock becomes wrong', async () => {
    const proxy = await startFaultProxy(world().endpoint);
    afterThisTest(proxy.close);
    const running = start('start', proxy.endpoint);
    await running.untilItPrints(HELD);
    proxy.clock.nowMs = () => Date.now() + 60_000;
    expect(await running.end()).toMatchObject({ code: 3, stdout: '' });
  });

  test.each([
    [['--address', '203.0.113.11'], 3, `it has ${OWN}, ${OTHER}, 203.0.113.30. To add it, list it in apiServers`],
    [['--address', '203.0.113.30'], 3, 'is shared by several API servers'],
    [['--address', 'here'], 2, '--address here is not an IP address'],
    [['--address', OWN, '--every', '10m'], 2, 'use at most 400s, or increase endpoints.leaseSeconds'],
  ])('kbctl heartbeat refuses %j', async (words, code, says) => {
    expect(await heartbeat(...words)).toMatchObject(failed(code, says));
  });

  test.each([
    ['has no kubeconfig with a CA', { kubeconfig: { file: './nowhere' } }, 'use another one with --kubeconfig FILE.'],
    ['has the reconciler none, and so no leases', { endpoints: { reconciler: 'none' } }, 'publishes no endpoints'],
  ])('kbctl heartbeat refuses a cluster that %s', async (_, fields, reason) => {
    await world().register({ apiServers: [{ address: OWN }], ...fields });
    expect(await heartbeat('--address', OWN)).toMatchObject(failed(3, reason));
  });
}

/** Registers the cluster with two API servers, and with an address that several API servers share. */
function register(world: KbctlWorld, fields: object = {}): Promise<unknown> {
  const probe = { url: `${world.server}/readyz` };
  const apiServers = [
    { address: OWN, probe },
    { address: OTHER, probe },
    { address: '203.0.113.30', kind: 'shared', probe },
  ];
  return world.register({ apiServers, ...fields });
}
