import { expect, test } from '@jest/globals';
import { withdrawnUntil } from '../../lib/leases/lease.ts';
import { leaseOf, readLeases } from '../../lib/table/leases.ts';
import { ENDPOINTS } from '../../local/stand-in/resources.ts';
import {
  CLUSTER,
  documentIn,
  expectPrinted,
  failed,
  type KbctlWorld,
  type KbctlWorlds,
  ran,
} from '../support/kbctl-world.ts';

const [FIRST, SECOND, THIRD] = ['203.0.113.10', '203.0.113.20', '203.0.113.30'] as const;

export function describeDeregister(worlds: KbctlWorlds): void {
  const world = worlds.each(async (opened) => {
    await opened.register({ apiServers: apiServersOf(opened) });
    await opened.runAllLoops();
  });
  const deregister = (...words: string[]) => world().kbctl(['deregister', CLUSTER, ...words]);
  const leases = async () => (await readLeases(world().table, CLUSTER)).leases;
  const endOfWithdrawal = async (address: string) => {
    const lease = leaseOf(await readLeases(world().table, CLUSTER), address);
    return lease && withdrawnUntil(lease, 0);
  };
  const published = () => world().published();

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

  test('kbctl deregister can be repeated, and with -o json prints one document', async () => {
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

  test('kbctl deregister reports that the address is still published if it cannot reach the API server', async () => {
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

  test('kbctl deregister ends a withdrawal with --undo, so that the next tick publishes the address again', async () => {
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
      'paused, and its API server is not reached',
      {},
      ['pause', CLUSTER, '--reason', 'an upgrade', '--by', 'me'],
      /^prod-eu-1 is paused until \S+Z by me: an upgrade\. Run the command again to remove it during the pause\.$/m,
      'the first tick after the pause publishes it if it answers',
    ],
  ])(
    'kbctl deregister and its --undo promise nothing for the next tick if the cluster is %s',
    async (_, fields, pause, said, next) => {
      await world().register({ apiServers: apiServersOf(world()), ...fields });
      if (pause.length > 0) await world().kbctl(pause);
      const ended = await deregister(THIRD, '--last-one', '--kubeconfig', world().file('no-cluster', '{}'));
      expectPrinted(ended, 1, /^203\.0\.113\.30 is withdrawn until \S+Z, and still published\n/);
      expect(ended.stderr).toMatch(said);
      expect(ended.stderr).not.toContain('next tick');
      const undone = `${THIRD} is no longer withdrawn from ${CLUSTER}: ${next}\n`;
      expect(await deregister(THIRD, '--undo')).toEqual(ran(0, undone));
    },
  );
}

function apiServersOf({ server }: KbctlWorld) {
  return [FIRST, SECOND, THIRD].map((address) => ({ address, probe: { url: `${server}/readyz` } }));
}
