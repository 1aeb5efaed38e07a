import { describe, expect, test } from '@jest/globals';
import { IP_ADDRESSES } from '../../local/stand-in/resources.ts';
import { addressesOf } from '../support/kbctl-ranges.ts';
import {
  CLUSTER,
  documentIn,
  expectPrinted,
  failed,
  type KbctlWorld,
  type KbctlWorlds,
  passed,
  registered,
} from '../support/kbctl-world.ts';
import { stockRecord } from '../support/stock-objects.ts';

const HOUR_MS = 3_600_000;

export function describeShow(worlds: KbctlWorlds): void {
  describe('kbctl show before the first pass', () => {
    const world = worlds.each(registered);

    test('before the first pass, kbctl show reports that nothing can be allocated yet', async () => {
      const shown = await show(world(), 'ip', CLUSTER, '10.0.0.77', '--no-services');
      expectPrinted(shown, 0, /^10\.0\.0\.77 {2}unknown\n/, 'written   never; nothing can be allocated until');
    });
  });

  describe('kbctl show of ranges that stay unchanged', () => {
    const world = worlds.shared(passed);

    test('kbctl show ip prints the Service that has the address, as the API server lists it', async () => {
      const shown = await show(world(), 'ip', CLUSTER, '10.0.0.1');
      const range = /^10\.0\.0\.1 {2}taken\n +range +10\.0\.0\.0\/24 \(serviceips\), static band/;
      expectPrinted(shown, 0, range, /\n +services +default\/kubernetes \(created \d+s ago\)\n/);
      expect(shown.stderr).toContain(`${CLUSTER}: ${world().server} (kubeconfig `);
    });

    test('kbctl show ip reports a free address, in any notation of the address', async () => {
      const shown = await show(world(), 'ip', CLUSTER, '::ffff:10.0.0.200', '-o', 'json');
      const place = { kind: 'ClusterIP', cluster: CLUSTER, item: '10.0.0.200', band: 'dynamic' };
      expect(documentIn(shown)).toMatchObject({
        ...place,
        state: 'free',
        ready: true,
        services: [],
        findings: [],
        faults: [],
      });
    });

    test('kbctl show ip prints the content of the table when the API server does not answer, and fails', async () => {
      const kubeconfig = world().unreachableCluster();
      const shown = await show(world(), 'ip', CLUSTER, '10.0.0.1', '--kubeconfig', kubeconfig);
      expectPrinted(shown, 4, /^10\.0\.0\.1 {2}taken\n/);
      expect(shown.stderr).toContain('Cannot list Services: http://127.0.0.1:1 ');
    });

    test('kbctl show port reports that a port is free', async () => {
      const free = /^30080 {2}free\n +range +30000-32767 \(servicenodeports\), static band/;
      expectPrinted(await show(world(), 'port', CLUSTER, '30080'), 0, free);
    });

    const outside = 'is not in the valid range. The range of valid IPs is 10.0.0.0/24';
    test.each([
      ['an address outside the range', 'ip', '10.0.1.1', 1, `error: the provided IP (10.0.1.1) ${outside}`],
      ['the broadcast address', 'ip', '10.0.0.255', 1, `error: the provided IP (10.0.0.255) ${outside}`],
      ['another family', 'ip', 'fd00::1', 1, `error: Cluster ${CLUSTER} has no IPv6 range, only 10.0.0.0/24.`],
      ['text that is not an address', 'ip', 'web', 2, 'error: "web" is not an IP address.'],
      ['a port outside the range', 'port', '80', 1, 'The range of valid ports is 30000-32767'],
      ['a number that is not a port', 'port', '99999', 2, ''],
    ])('kbctl show refuses %s', async (_, kind, value, code, message) => {
      expect(await show(world(), kind, CLUSTER, value)).toEqual(failed(code, message));
    });
  });

  describe('kbctl show after changes', () => {
    const world = worlds.each(passed);

    test('kbctl show ip --no-services prints a hold without a request to the API server', async () => {
      const untilMs = Date.now() + HOUR_MS;
      const hold = { owner: 'ci', untilMs, takenUpBy: 'owner' } as const;
      await (await addressesOf(world().table)).allocate(['10.0.0.9'], { hold });
      const shown = await show(world(), 'ip', CLUSTER, '10.0.0.9', '--no-services');
      const until = `by ci until ${new Date(untilMs).toISOString()} (in `;
      expectPrinted(shown, 0, /^10\.0\.0\.9 {2}held\n/, until, 'Services of the owner can claim it');
      expect(shown.stdout).not.toContain('services');
      expect(shown.stderr).toBe('');
    });

    test('kbctl show ip prints how many strikes a leak has', async () => {
      await (await addressesOf(world().table)).allocate(['10.0.0.50']);
      await world().runAllLoops();
      const finding = /last pass mayHaveLeaked: the cluster IP 10\.0\.0\.50 may have leaked/;
      const strikes = /leak +1 of 3 strikes; 2 more enforcing passes of cluster-ip-repair/;
      expectPrinted(await show(world(), 'ip', CLUSTER, '10.0.0.50'), 1, strikes, finding);
    });

    test('kbctl show ip fails when two Services have the address, and prints to which of them its IPAddress belongs', async () => {
      for (const name of ['web', 'web-copy']) world().restore(name, '10.0.0.77');
      const creationTimestamp = new Date(Date.now() - HOUR_MS).toISOString();
      const record = stockRecord('10.0.0.77', 'shop/web');
      const metadata = { ...record.metadata, uid: 'uid', resourceVersion: '1', creationTimestamp };
      world().standIn.store.insert(IP_ADDRESSES, { ...record, metadata });
      const lines = ['services  shop/web, shop/web-copy\n', '  ipaddress shop/web (created 60m ago)\n'];
      const faults = ['2 Services have it, and only one may', 'it is not allocated in the table'];
      expectPrinted(await show(world(), 'ip', CLUSTER, '10.0.0.77'), 1, ...lines, ...faults);
    });

    test('if the API servers allocate, kbctl show ip prints what Services claim, and that the table has no usage bitmap', async () => {
      await world().register({ allocator: 'apiserver' });
      const taken = /^10\.0\.0\.1 {2}taken\n/;
      const written = 'written   not in the table, which has no usage bitmap of this range: the API servers of';
      expectPrinted(await show(world(), 'ip', CLUSTER, '10.0.0.1'), 0, taken, written);
      await world().runAllLoops();
      expectPrinted(await show(world(), 'ip', CLUSTER, '10.0.0.1', '--no-services'), 0, taken);
    });
  });
}

function show({ kbctl }: KbctlWorld, ...words: readonly string[]) {
  return kbctl(['show', ...words]);
}
