import { beforeAll, describe, expect, test } from '@jest/globals';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { IP_ADDRESSES, SERVICES } from '../../local/stand-in/resources.ts';
import { addressesOf } from '../support/kbctl-ranges.ts';
import { CLUSTER, documentIn, expectPrinted, failed, type KbctlWorld } from '../support/kbctl-world.ts';
import { stockRecord, stockService } from '../support/stock-objects.ts';

const HOUR_MS = 3_600_000;

export function describeShow(world: () => KbctlWorld): void {
  const show = (...words: readonly string[]) => world().kbctl(['show', ...words]);
  const register = (fields?: object) => world().register(fields);

  test('before the first pass, kbctl show reports that nothing can be allocated yet', async () => {
    await register();
    const shown = await show('ip', CLUSTER, '10.0.0.77', '--no-services');
    expectPrinted(shown, 0, /^10\.0\.0\.77 {2}unknown\n/, 'written   never; nothing can be allocated until');
  });

  describe('kbctl show ip', () => {
    beforeAll(async () => {
      await world().runAllLoops();
    });

    test('kbctl show ip prints the Service that has the address, as the API server lists it', async () => {
      const shown = await show('ip', CLUSTER, '10.0.0.1');
      const range = /^10\.0\.0\.1 {2}taken\n +range +10\.0\.0\.0\/24 \(serviceips\), static band/;
      expectPrinted(shown, 0, range, /\n +services +default\/kubernetes \(created \d+s ago\)\n/);
      expect(shown.stderr).toContain(`${CLUSTER}: ${world().server} (kubeconfig `);
    });

    test('kbctl show ip reports a free address, in any notation of the address', async () => {
      const shown = await show('ip', CLUSTER, '::ffff:10.0.0.200', '-o', 'json');
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

    test('kbctl show ip --no-services prints a hold without a request to the API server', async () => {
      const untilMs = Date.now() + HOUR_MS;
      const hold = { owner: 'ci', untilMs, takenUpBy: 'owner' } as const;
      await (await addressesOf(world().table)).allocate(['10.0.0.9'], { hold });
      const shown = await show('ip', CLUSTER, '10.0.0.9', '--no-services');
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
      expectPrinted(await show('ip', CLUSTER, '10.0.0.50'), 1, strikes, finding);
    });

    test('kbctl show ip fails when two Services have the address', async () => {
      for (const name of ['web', 'web-copy']) world().restore(name, '10.0.0.77');
      const faults = ['2 Services have it, and only one may', 'it is not allocated in the table'];
      expectPrinted(await show('ip', CLUSTER, '10.0.0.77'), 1, /services +shop\/web, shop\/web-copy\n/, ...faults);
    });

    test('kbctl show ip shows the ages of Services and of the IPAddress, and warns if the IPAddress belongs to a newer Service', async () => {
      const { store } = world().standIn;
      const placed = (object: KubernetesObject, hours: number) => {
        const creationTimestamp = new Date(Date.now() - hours * HOUR_MS).toISOString();
        return {
          ...object,
          metadata: { ...object.metadata, uid: `uid-of-${object.metadata.name}`, creationTimestamp },
        };
      };
      for (const [name, hours] of Object.entries({ old: 3, new: 1 })) {
        const service = { ...stockService(name, '10.0.0.66'), metadata: { namespace: 'shop', name } };
        store.insert(SERVICES, placed(service, hours));
      }
      store.insert(IP_ADDRESSES, placed(stockRecord('10.0.0.66', 'shop/new'), 1));
      const services = 'services  shop/new (created 60m ago), shop/old (created 3h ago)\n';
      const fault = 'its IPAddress belongs to shop/new, although shop/old is older';
      const ipAddress = '  ipaddress shop/new (created 60m ago)\n';
      expectPrinted(await show('ip', CLUSTER, '10.0.0.66'), 1, services, ipAddress, fault);
    });

    test('kbctl show ip prints the content of the table when the API server does not answer, and fails', async () => {
      const kubeconfig = world().unreachableCluster();
      const shown = await show('ip', CLUSTER, '10.0.0.1', '--kubeconfig', kubeconfig);
      expectPrinted(shown, 4, /^10\.0\.0\.1 {2}taken\n/);
      expect(shown.stderr).toContain('Cannot list Services: http://127.0.0.1:1 ');
    });

    const outside = 'is not in the valid range. The range of valid IPs is 10.0.0.0/24';
    test.each([
      ['an address outside the range', '10.0.1.1', 1, `the provided IP (10.0.1.1) ${outside}`],
      ['the broadcast address', '10.0.0.255', 1, `the provided IP (10.0.0.255) ${outside}`],
      ['another family', 'fd00::1', 1, `Cluster ${CLUSTER} has no IPv6 range, only 10.0.0.0/24.`],
      ['text that is not an address', 'web', 2, '"web" is not an IP address.'],
    ])('kbctl show ip refuses %s', async (_, value, code, message) => {
      expect(await show('ip', CLUSTER, value)).toEqual(failed(code, `error: ${message}`));
    });
  });

  test('kbctl show port reports that a port is free', async () => {
    const free = /^30080 {2}free\n +range +30000-32767 \(servicenodeports\), static band/;
    expectPrinted(await show('port', CLUSTER, '30080'), 0, free);
  });

  test('kbctl show port refuses a port outside the range, and a text that is not a port', async () => {
    const range = 'The range of valid ports is 30000-32767';
    expect(await show('port', CLUSTER, '80')).toMatchObject(failed(1, range));
    expect(await show('port', CLUSTER, '99999')).toMatchObject({ code: 2, stdout: '' });
  });

  test('if the API servers allocate, kbctl show ip prints what Services claim, and that the table has no usage bitmap', async () => {
    await register({ allocator: 'apiserver' });
    const taken = /^10\.0\.0\.1 {2}taken\n/;
    const written = 'written   not in the table, which has no usage bitmap of this range: the API servers of';
    expectPrinted(await show('ip', CLUSTER, '10.0.0.1'), 0, taken, written);
    await world().runAllLoops();
    expectPrinted(await show('ip', CLUSTER, '10.0.0.1', '--no-services'), 0, taken);
  });
}
