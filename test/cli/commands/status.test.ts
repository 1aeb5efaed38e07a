import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { CLUSTERS } from '../../../lib/table/clusters.ts';
import { IP_ADDRESSES, NAMESPACES } from '../../../local/stand-in/resources.ts';
import { serviceError } from '../../support/fault-proxy.ts';
import { addressesOf } from '../../support/kbctl-ranges.ts';
import {
  CLUSTER,
  documentIn,
  expectPrinted,
  failed,
  type KbctlWorld,
  kbctlWorlds,
  passed,
  ran,
} from '../../support/kbctl-world.ts';
import { stockRecord } from '../../support/stock-objects.ts';

const HOUR_MS = 3_600_000;

const worlds = kbctlWorlds();

describe('before the first passes', () => {
  const world = worlds.each();

  test('kbctl status prints how to register a cluster if none is registered', async () => {
    const advice = ran(0, '', expect.stringContaining('Register one with "kbctl cluster apply -f FILE"'));
    expect(await world().kbctl(['status'])).toEqual(advice);
  });

  test('kbctl status shows a cluster that has had no pass yet', async () => {
    await world().register();
    const shown = await world().kbctl(['status', CLUSTER]);
    expectPrinted(shown, 0, /203\.0\.113\.10 +never seen/, /cluster-ip-repair +never ran/);
  });

  test('before the first pass, kbctl show reports that nothing can be allocated yet', async () => {
    await world().register();
    const shown = await show(world(), 'ip', CLUSTER, '10.0.0.77', '--no-services');
    expectPrinted(shown, 0, /^10\.0\.0\.77 {2}unknown\n/, 'written   never; nothing can be allocated until');
  });

  test('kbctl doctor prints how to register a cluster if none is registered', async () => {
    const lines = [
      '✓ table: reads, lists and writes',
      "✓ clock: agrees with the table's",
      '✗ clusters: none is registered',
    ];
    expectPrinted(await world().kbctl(['doctor']), 1, `${lines.join('\n')}\n    → `);
  });

  test.each([
    ['a table that does not exist', [CLUSTER, '--table', 'no-such-table'], '✗ table: Table "no-such-table" was not'],
    ['a registration that cannot be read', ['broken'], '✗ spec: '],
  ])('kbctl doctor fails for %s', async (_, words, line) => {
    await world().table.put({ cluster: CLUSTERS, key: 'broken', schema: 1, value: 'nothing' }, undefined);
    expectPrinted(await world().kbctl(['doctor', ...words]), 1, line);
  });
});

describe('after the first passes of a cluster', () => {
  const world = worlds.shared(passed);

  test('kbctl status of a healthy cluster shows leases, loops and ranges', async () => {
    const shown = await world().kbctl(['status', CLUSTER]);
    expectPrinted(
      shown,
      0,
      `${CLUSTER}  good  enforce, allocator table, generation 1\n`,
      /203\.0\.113\.10 +valid .*answered 200/,
      /kubernetes-service +good /,
      /10\.0\.0\.0\/24 +cluster IPs +▏ +<1% +\d of 254/,
    );
    expect(shown.stdout).not.toContain('Needs attention');
    expect(shown.stderr).toBe('');
  });

  test.each([
    ['status', 'a line for each cluster', [], /^NAME +HEALTH .*\nprod-eu-1 +good +enforce +1\/1 /],
    ['get leases', 'the leases of a cluster', [CLUSTER], /^ADDRESS .*\n203\.0\.113\.10 +valid/],
    ['get ranges', 'the ranges of a cluster', [CLUSTER], /^RANGE .*\n10\.0\.0\.0\/24 +cluster IPs/],
    ['get runs', 'the last runs of the loops', [CLUSTER], /^LOOP .*\nsystem-namespaces +good/],
    ['get leases', 'a list of all clusters', ['-o', 'yaml'], /^.*\nkind: LeaseList\n.*\nitems:\n +- cluster: prod/],
    ['get findings', 'nothing for a healthy cluster', [CLUSTER], /^$/],
  ])('kbctl %s prints %s', async (command, _, words, pattern) => {
    expectPrinted(await world().kbctl([...command.split(' '), ...words]), 0, pattern);
  });

  test('kbctl status prints each cluster that an argument names, and refuses an unknown name', async () => {
    expectPrinted(await world().kbctl(['status', CLUSTER, CLUSTER]), 0, /^prod-eu-1 [\s\S]*\n\nprod-eu-1 /);
    expect(documentIn(await world().kbctl(['status', CLUSTER, CLUSTER, '-o', 'json']))).toMatchObject({ total: 2 });
    expect(await world().kbctl(['status', CLUSTER, 'other'])).toMatchObject({ code: 3, stdout: '' });
  });

  test('with -o name, kbctl status, kbctl cluster get and kbctl get print only the names of clusters', async () => {
    for (const words of [['status'], ['status', CLUSTER], ['cluster', 'get'], ['get', 'leases']]) {
      expect(await world().kbctl([...words, '-o', 'name'])).toEqual(ran(0, `${CLUSTER}\n`));
    }
  });

  test('with --watch, kbctl status and kbctl get repeat their output until Ctrl-C', async () => {
    for (const words of [['status'], ['get', 'leases']]) {
      const watching = world().start([...words, '--watch']);
      await watching.untilItPrints(/\n\n.*\n.*\n\n/);
      expect(await watching.end('SIGINT')).toMatchObject({ code: 130, stderr: '' });
    }
  });

  test('kbctl status with --watch continues after a failed read of the table', async () => {
    const { env, plan } = await world().startProxy();
    const watching = world().start(['status', '--watch'], { env });
    await watching.untilItPrints(/prod-eu-1 +good/);
    plan('Query', serviceError(400, 'AccessDeniedException', 'not allowed'));
    await watching.untilItPrints(/The table does not answer, retrying: .*\n[\s\S]*prod-eu-1 +good/);
    expect((await watching.end('SIGINT')).code).toBe(130);
  });

  test('shell completion offers the clusters of the table that --table specifies', async () => {
    const { tableName, endpoint } = world();
    const words = ['--table', tableName, '--endpoint-url', endpoint, 'status', 'prod'];
    expect(await world().kbctl(['completion', 'bash', '--', ...words])).toEqual(ran(0, `${CLUSTER}\n`));
  });

  test('kbctl status -o json prints one document', async () => {
    expect(documentIn(await world().kbctl(['status', CLUSTER, '-o', 'json']))).toMatchObject({
      apiVersion: 'kbctl/v1',
      kind: 'ClusterStatus',
      name: CLUSTER,
      health: 'good',
      apiServers: [{ address: '203.0.113.10', state: 'active', lastProbe: 'answered 200' }],
    });
  });

  test('kbctl page writes the page of one cluster or of all clusters, and reports a file that it cannot write', async () => {
    const file = world().file('status.html', '');
    expect(await world().kbctl(['page', CLUSTER, '-f', file])).toMatchObject({ code: 0, stdout: '' });
    expect(readFileSync(file, 'utf8')).toMatch(/<h1>prod-eu-1<\/h1>[\s\S]*203\.0\.113\.10/);
    expect((await world().kbctl(['page', '-f', '-'])).stdout).toContain('1 cluster: 1 good.');
    expect(await world().kbctl(['page', '-f', 'none/status.html'])).toMatchObject({
      code: 3,
      stderr: 'error: Cannot write none/status.html (ENOENT): use a file in a writable folder.\n',
    });
  });

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

  test('kbctl doctor reports no failed check for a healthy cluster', async () => {
    const checked = await world().kbctl(['doctor', CLUSTER]);
    const probe = /✓ probe: 203\.0\.113\.10, probed at \S+ and published with port 6443, answered 200\n/;
    expectPrinted(checked, 0, `\n\n${CLUSTER}\n✓ spec: mode enforce`, probe);
    expect(checked.stdout).not.toMatch(/✗|queue/);
    const source = `kubeconfig ${world().kubeconfigFile}, context ${CLUSTER}`;
    expect(checked.stderr).toBe(`${CLUSTER}: ${world().server} (${source})\n`);
  });

  test('kbctl doctor -o json prints one document', async () => {
    expect(documentIn(await world().kbctl(['doctor', '-o', 'json']))).toMatchObject({
      apiVersion: 'kbctl/v1',
      kind: 'Doctor',
      ok: true,
      lines: expect.arrayContaining([
        { check: 'clusters', level: 'ok', message: 'registered: 1' },
        expect.objectContaining({ cluster: CLUSTER, check: 'service', level: 'ok' }),
      ]),
    });
  });

  test('kbctl doctor reports an API server that does not answer', async () => {
    const file = world().unreachableCluster();
    const checked = await world().kbctl(['doctor', CLUSTER, '--kubeconfig', file]);
    expectPrinted(checked, 1, '✗ api server: ', RegExp(`✓ kubeconfig: read context there of kubeconfig\\s+${file}:`));
    expect(checked.stdout).not.toContain('rights');
  });

  test('kbctl doctor refuses --kubeconfig without the name of a cluster', async () => {
    const refused = failed(2, '--kubeconfig needs the name of a cluster.');
    expect(await world().kbctl(['doctor', '--kubeconfig', 'x'])).toEqual(refused);
  });
});

describe('after changes', () => {
  const world = worlds.each(passed);

  test('kbctl status shows the last writes of passes, and the writes that an observing pass would make', async () => {
    const status = async () => (await world().kbctl(['status', CLUSTER])).stdout;
    expect(await status()).toMatch(/\nLast changes\n(- .*\n|\s+.*\n)*- kubernetes-service, \S+ ago: created service /);
    await world().register({ mode: 'observe' });
    world().standIn.store.remove(NAMESPACES, world().standIn.store.get(NAMESPACES, undefined, 'kube-node-lease'));
    await world().runAllLoops();
    expect(await status()).toContain('\nWould write\n- system-namespaces: would create Namespace kube-node-lease\n');
  });

  test('if kbctl get cannot read an item because a later version wrote it, the command fails, and the error names the item', async () => {
    const { table } = world();
    const later = { cluster: CLUSTERS, key: 'later-1', schema: 99, value: {} };
    await table.put(later, undefined);
    const { code, stderr } = await world().kbctl(['get', 'findings']);
    const reason = `Cannot read later-1: Item ${CLUSTERS}/later-1 has schema 99`;
    expect([code, stderr]).toEqual([1, expect.stringContaining(reason)]);
  });

  test('if two Services have the same address, kbctl status and kbctl get findings print the duplicate and fail', async () => {
    for (const name of ['web', 'web-copy']) world().restore(name, '10.0.0.77');
    await world().runAllLoops();
    const shown = await world().kbctl(['status', CLUSTER]);
    expectPrinted(shown, 1, /✗ duplicate: .*10\.0\.0\.77/, 'shop/web-copy');
    const { code, stdout } = await world().kbctl(['get', 'findings', '-o', 'json']);
    const finding = { cluster: CLUSTER, type: 'duplicate', service: 'shop/web-copy', item: '10.0.0.77' };
    expect(code).toBe(1);
    expect(JSON.parse(stdout).items).toContainEqual(expect.objectContaining(finding));
  });

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
    const strikes = /leak +1 of 3 strikes: the third enforcing pass of cluster-ip-repair/;
    expectPrinted(await show(world(), 'ip', CLUSTER, '10.0.0.50'), 1, strikes, finding);
  });

  test('kbctl show ip fails when two Services have the address, and prints to which of these Services the IPAddress belongs', async () => {
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

function show({ kbctl }: KbctlWorld, ...words: readonly string[]) {
  return kbctl(['show', ...words]);
}
