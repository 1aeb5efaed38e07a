import { beforeEach, describe, expect, test } from '@jest/globals';
import { withdrawnUntil } from '../../../lib/leases/lease.ts';
import { unregistered, updateCluster } from '../../../lib/table/cluster-registration.ts';
import { leaseOf, readLeases } from '../../../lib/table/leases.ts';
import { ENDPOINTS } from '../../../local/stand-in/resources.ts';
import { afterThisTest } from '../../support/after-this-test.ts';
import { eventually } from '../../support/eventually.ts';
import { serviceError } from '../../support/fault-proxy.ts';
import { found } from '../../support/found.ts';
import type { RunningKbctl } from '../../support/kbctl-process.ts';
import { CLUSTER, documentIn, expectPrinted, failed, kbctlWorlds, ran } from '../../support/kbctl-world.ts';
import { withdraw } from '../../support/put-lease.ts';

const [FIRST, SECOND, THIRD] = ['203.0.113.10', '203.0.113.20', '203.0.113.30'] as const;
const HELD = /203\.0\.113\.10 has a valid lease \(its API server answered 200\)/;

const world = kbctlWorlds().each();
const published = () => world().published();
const lease = async (address: string) => leaseOf(await readLeases(world().table, CLUSTER), address);

/** Registers the cluster with three API servers. The third one is of the given kind. */
function register(kind: 'server' | 'shared', fields: object = {}): Promise<unknown> {
  const probe = { url: `${world().server}/readyz` };
  const [first, second, third] = [FIRST, SECOND, THIRD].map((address) => ({ address, probe }));
  return world().register({ apiServers: [first, second, { ...third, kind }], ...fields });
}

describe('kbctl deregister', () => {
  beforeEach(async () => {
    await register('server');
    await world().runAllLoops();
  });
  const deregister = (...words: string[]) => world().kbctl(['deregister', CLUSTER, ...words]);
  const leases = async () => (await readLeases(world().table, CLUSTER)).leases;
  const endOfWithdrawal = async (address: string) => withdrawnUntil(found(await lease(address)), 0);

  test.each<[string, string[], number, string]>([
    ['an unknown address', ['203.0.113.11'], 3, `203.0.113.11 is not an API server of ${CLUSTER}: it has ${FIRST}, `],
    ['an unknown address with --undo', ['203.0.113.11', '--undo'], 3, `is not an API server of ${CLUSTER}`],
    ['a text that is not an address', ['web'], 3, '"web" is not an IP address'],
    ['a withdrawal of more than a day', [FIRST, '--for', '25h'], 2, 'A withdrawal lasts at most 24h.'],
  ])('kbctl deregister refuses %s', async (_, words, code, message) => {
    const before = await leases();
    expect(await deregister(...words)).toMatchObject(failed(code, message));
    expect(await leases()).toEqual(before);
  });

  test('kbctl deregister --dry-run prints what it would write, and writes nothing', async () => {
    const before = await leases();
    const title = /^203\.0\.113\.10 would be withdrawn from prod-eu-1 until \S+Z \(dry run\)\n/;
    expectPrinted(await deregister(FIRST, '--dry-run'), 1, title, '\n  would update Endpoints default/kubernetes');
    expect(await leases()).toEqual(before);
    expect(published()).toEqual([FIRST, SECOND, THIRD]);
  });

  test('kbctl deregister removes the address from the endpoints until the end of --for', async () => {
    const title = /^203\.0\.113\.10 is removed from the endpoints of prod-eu-1, and withdrawn until \S+Z\n/;
    expectPrinted(await deregister(FIRST, '--for', '2h'), 0, title, /Z\n {2}updated endpoints default\/kubernetes: /);
    expect(published()).toEqual([SECOND, THIRD]);
    expect(await endOfWithdrawal(FIRST)).toBeGreaterThan(Date.now() + 3_600_000);
  });

  test('kbctl deregister can be repeated, and prints one document with -o json', async () => {
    await deregister(FIRST);
    expect(documentIn(await deregister(FIRST, '-o', 'json'))).toEqual({
      apiVersion: 'kbctl/v1',
      kind: 'Deregistration',
      cluster: CLUSTER,
      address: FIRST,
      until: expect.stringMatching(/Z$/),
      stillPublished: false,
      // A tick that began before the deregistration can no longer write an object that is reported as fenced.
      changes: ['fenced endpoints default/kubernetes', 'fenced endpointslice default/kubernetes'],
      wouldWrite: [],
    });
  });

  test('kbctl deregister withdraws the address before it waits for the API server, and reports the withdrawal at Ctrl-C', async () => {
    const file = world().unreachableCluster();
    const running = world().start(['deregister', CLUSTER, SECOND, '--kubeconfig', file]);
    await running.untilItPrints(/prod-eu-1: http/);
    const title = /^203\.0\.113\.20 is withdrawn until \S+Z, and still published\n/;
    expectPrinted(await running.end('SIGINT'), 130, title);
    expect(published()).toEqual([FIRST, SECOND, THIRD]);
  });

  test('kbctl deregister reports that the address is still published if the API server cannot be reached', async () => {
    const file = world().file('no-cluster', '{}');
    const ended = await deregister(SECOND, '--kubeconfig', file);
    expectPrinted(ended, 1, /^203\.0\.113\.20 is withdrawn until \S+Z, and still published\n {2}kubeconfig /);
    expect(ended.stderr).toContain('The kubernetes-service loop removes it at its next tick.');
    expect(await endOfWithdrawal(SECOND)).toBeGreaterThan(Date.now());
    await world().runAllLoops();
    expect(published()).toEqual([FIRST, THIRD]);
  });

  test('kbctl deregister refuses the last live address, and the error suggests --last-one', async () => {
    const refusal = /203\.0\.113\.30 is the last live address of prod-eu-1: .* or use --last-one\. Nothing was/;
    for (const address of [FIRST, SECOND]) await deregister(address);
    expect(await deregister(THIRD)).toEqual(ran(3, '', expect.stringMatching(refusal)));
    expect(published()).toEqual([THIRD]);
    expect(await deregister(THIRD, '--last-one')).toMatchObject({ code: 0 });
    expect(world().standIn.store.find(ENDPOINTS, 'default', 'kubernetes')?.['subsets'] ?? []).toEqual([]);
  });

  test('kbctl deregister --undo ends a withdrawal, so that the next tick publishes the address again', async () => {
    const result = `${THIRD} is no longer withdrawn from ${CLUSTER}: the next tick publishes it if it answers\n`;
    await deregister(THIRD);
    expect(await deregister(THIRD, '--undo')).toEqual(ran(0, result));
    const shown = await world().kbctl(['get', 'leases', CLUSTER]);
    expectPrinted(shown, 0, /203\.0\.113\.30 +withdrawn +when it answers/);
    await world().runAllLoops();
    expect(published()).toEqual([FIRST, SECOND, THIRD]);
    const document = { kind: 'WithdrawalEnd', cluster: CLUSTER, address: THIRD };
    expect(documentIn(await deregister(THIRD, '--undo', '-o', 'json'))).toMatchObject(document);
  });

  test.each([
    [
      'in mode observe',
      { mode: 'observe' },
      [],
      /^prod-eu-1 is in mode observe: its endpoints stay unchanged\.$/m,
      'nothing is published (mode observe)',
    ],
    [
      'paused and its API server cannot be reached',
      {},
      ['pause', CLUSTER, '--reason', 'an upgrade', '--by', 'me'],
      /^prod-eu-1 is paused until \S+Z by me: an upgrade\. Run the command again to remove it during the pause\.$/m,
      'the first tick after the pause publishes it if it answers',
    ],
  ])('if the cluster is %s, kbctl deregister announces no change by a tick', async (_, fields, pause, said, next) => {
    await register('server', fields);
    if (pause.length > 0) await world().kbctl(pause);
    const ended = await deregister(THIRD, '--last-one', '--kubeconfig', world().file('no-cluster', '{}'));
    expectPrinted(ended, 1, /^203\.0\.113\.30 is withdrawn until \S+Z, and still published\n/);
    expect(ended.stderr).toMatch(said);
    expect(ended.stderr).not.toContain('next tick');
    const undone = `${THIRD} is no longer withdrawn from ${CLUSTER}: ${next}\n`;
    expect(await deregister(THIRD, '--undo')).toEqual(ran(0, undone));
  });
});

describe('kbctl heartbeat', () => {
  beforeEach(() => register('shared'));
  const heartbeat = (...words: string[]) => world().kbctl(['heartbeat', CLUSTER, ...words]);
  const AGENT = ['heartbeat', CLUSTER, '--address', FIRST, '--every', '1s'];
  /** Waits until an agent has refreshed the lease of its API server. Ends the agent after the test. */
  const ready = async <Agent extends RunningKbctl>(agent: Agent): Promise<Agent> => {
    afterThisTest(() => agent.end('SIGKILL'));
    await agent.untilItPrints(HELD);
    return agent;
  };
  const start = (env: Readonly<Record<string, string>> = {}) => ready(world().start(AGENT, { env }));

  test('kbctl heartbeat refreshes the lease of its API server, and the loops publish the address of that server', async () => {
    const running = await ready(world().spawn(AGENT));
    await world().runAllLoops();
    expect((await lease(FIRST))?.source).toBe('agent');
    expect(published()).toContain(FIRST);
    const first = (await lease(FIRST))?.generation ?? 0;
    await eventually(async () => {
      expect((await lease(FIRST))?.generation).toBeGreaterThan(first);
    });
    const { code, stdout, stderr } = await running.end('SIGTERM');
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(stderr).toContain(`${CLUSTER}: refreshing the lease of ${FIRST} (600s) every 1s until Ctrl-C.\n`);
    expect(stderr).toContain(`Ending: removing ${FIRST} from the endpoints.`);
    expect(stderr).toContain(`${FIRST} is removed from the endpoints.\n`);
  });

  test('if the standard error of an agent is closed, the agent still removes its address when it ends, and no tick publishes the address again', async () => {
    const running = await ready(world().spawn(AGENT));
    await world().runAllLoops();
    expect(published()).toContain(FIRST);
    running.child.stderr?.destroy();
    expect(await running.end('SIGTERM')).toMatchObject({ code: 0 });
    expect(published()).not.toContain(FIRST);
    expect(await lease(FIRST)).toMatchObject({ source: 'agent', seenDown: true });
    await world().runAllLoops();
    expect(published()).not.toContain(FIRST);
  });

  test('if the agent of an API server has ended, kbctl heartbeat --once refreshes the lease once, and the loops publish the address again', async () => {
    const running = await start();
    await running.end('SIGTERM');
    expect(await heartbeat('--address', FIRST, '--once')).toEqual(ran(0, '', expect.stringMatching(HELD)));
    await world().runAllLoops();
    expect(published()).toContain(FIRST);
  });

  test('kbctl heartbeat does not refresh a lease during a withdrawal that an operator requested', async () => {
    const nowMs = Date.now();
    await withdraw(world().table, CLUSTER, { address: FIRST, untilMs: nowMs + 3_600_000, nowMs });
    const reason = /203\.0\.113\.10 is withdrawn until \S+Z: its lease is not refreshed before/;
    expect(await heartbeat('--address', FIRST, '--once')).toEqual(ran(1, '', expect.stringMatching(reason)));
  });

  test('kbctl heartbeat writes no lease for an API server that does not answer', async () => {
    await world().register({ apiServers: [{ address: FIRST, probe: { url: 'http://127.0.0.1:1/readyz' } }] });
    const refused = failed(4, 'its lease expires (its API server gave no answer: ');
    expect(await heartbeat('--address', FIRST, '--once')).toEqual(refused);
    expect(await lease(FIRST)).toBeUndefined();
  });

  test('kbctl heartbeat probes its API server with the current settings of the spec, even if they changed after the command began', async () => {
    const running = await start();
    await world().register({ apiServers: [{ address: FIRST, probe: { url: 'http://127.0.0.1:1/readyz' } }] });
    await running.untilItPrints(/its lease expires \(its API server gave no answer/);
    await running.end('SIGTERM');
  });

  test('in mode observe, an agent reports at its end that its address is still published', async () => {
    await world().runAllLoops();
    await register('shared', { mode: 'observe' });
    const running = await start();
    const { stderr } = await running.end('SIGTERM');
    expect(stderr).toMatch(/is withdrawn, and still published: .* removes it, but none in mode observe/);
  });

  test('kbctl heartbeat reports a table failure once, continues, and reports the recovery', async () => {
    const proxy = await world().startProxy();
    const running = await start(proxy.env);
    const refused = serviceError(400, 'AccessDeniedException', 'not allowed');
    proxy.plan('GetItem', refused, refused);
    await running.untilItPrints(/The table answers again/);
    const { code, stderr } = await running.end('SIGTERM');
    expect(code).toBe(0);
    expect(stderr.match(/The table does not answer/g)).toHaveLength(1);
  });

  test('kbctl heartbeat ends when the cluster is unregistered', async () => {
    const running = await start();
    await updateCluster(world().table, CLUSTER, unregistered);
    expect(await running.end()).toMatchObject(failed(3, `${CLUSTER} is no longer registered`));
  });

  test('kbctl heartbeat ends when the clock becomes wrong', async () => {
    const proxy = await world().startProxy();
    const running = await start(proxy.env);
    proxy.clock.nowMs = () => Date.now() + 60_000;
    expect(await running.end()).toMatchObject({ code: 3, stdout: '' });
  });

  test.each([
    [['--address', '203.0.113.11'], 3, `it has ${FIRST}, ${SECOND}, 203.0.113.30. To add it, list it in apiServers`],
    [['--address', THIRD], 3, 'is shared by several API servers'],
    [['--address', 'here'], 2, '--address here is not an IP address'],
    [['--address', FIRST, '--every', '10m'], 2, 'use at most 400s, or increase endpoints.leaseSeconds'],
  ])('kbctl heartbeat refuses %j', async (words, code, says) => {
    expect(await heartbeat(...words)).toMatchObject(failed(code, says));
  });

  test.each([
    ['has no kubeconfig with a CA', { kubeconfig: { file: './nowhere' } }, 'use another one with --kubeconfig FILE.'],
    ['has the reconciler none, and so no leases', { endpoints: { reconciler: 'none' } }, 'publishes no endpoints'],
  ])('kbctl heartbeat refuses a cluster that %s', async (_, fields, reason) => {
    await world().register({ apiServers: [{ address: FIRST }], ...fields });
    expect(await heartbeat('--address', FIRST)).toMatchObject(failed(3, reason));
  });
});
