import { beforeEach, describe, expect, test } from '@jest/globals';
import { isRefused } from '../../../lib/allocator/refusal.ts';
import { readRunRecord, writeRunRecord } from '../../../lib/table/run-records.ts';
import { SERVICE_CIDRS } from '../../../local/stand-in/resources.ts';
import { addressesOf, portsOf } from '../../support/kbctl-ranges.ts';
import { CLUSTER, documentIn, expectPrinted, failed, kbctlWorlds, ran, registered } from '../../support/kbctl-world.ts';
import { aRunRecord } from '../../support/run-records.ts';

const HOUR_MS = 3_600_000;

const world = kbctlWorlds().each(registered);
const allocate = (...words: readonly string[]) => world().kbctl(['allocate', ...words]);
const release = (...words: readonly string[]) => world().kbctl(['release', ...words]);
const lookUp = async (address: string) => {
  const states = await (await addressesOf(world().table)).lookUp([address]);
  return isRefused(states) ? states : states[0];
};

test('before the first pass, kbctl allocate fails with the message of upstream', async () => {
  const message = 'error: cannot allocate resources of type serviceipallocations at this time. Nothing was allocated.';
  const next = 'An enforcing pass has to save the range first: wait for the next one, or run';
  const command = `"kbctl run-once cluster-ip-repair ${CLUSTER}"`;
  expect(await allocate('ip', CLUSTER)).toEqual(ran(3, '', `${message} ${next} ${command}.\n`));
  expect((await allocate('port', CLUSTER)).stderr).toContain(`"kbctl run-once node-port-repair ${CLUSTER}"`);
  expect(await release('ip', CLUSTER, '10.0.0.9', '--yes')).toEqual(failed(3, command));
});

test('if nothing is held, kbctl get holds prints only the message that there are no holds', async () => {
  expect(await world().kbctl(['get', 'holds'])).toEqual(
    ran(0, '', expect.stringMatching(/^There are no holds in the table\. Name a cluster .*\n$/)),
  );
});

describe('after the first passes', () => {
  beforeEach(() => world().runAllLoops());

  test('kbctl allocate allocates a free address, and prints the address, its owner and the end of its hold', async () => {
    const allocated = await allocate('ip', CLUSTER, '--owner', 'ci');
    expectPrinted(allocated, 0, /^10\.0\.0\.\d+\n$/);
    expect(allocated.stderr).toMatch(/^Held for ci until \S+Z \(15m from now\)\.\n$/);
    const hold = { owner: 'ci', takenUpBy: 'any' };
    expect(await lookUp(allocated.stdout.trim())).toMatchObject({ taken: true, hold });
  });

  test('kbctl allocate allocates the given values, and prints them in canonical form and in the given order', async () => {
    const words = ['--hold', 'forever', '--owner', 'migration', '--taken-up-by', 'owner'];
    expect(await allocate('ip', CLUSTER, '::ffff:10.0.0.10', '10.0.0.9', ...words)).toEqual(
      ran(0, '10.0.0.10\n10.0.0.9\n', 'Held for migration without end.\n'),
    );
    const hold = { owner: 'migration', takenUpBy: 'owner', items: ['10.0.0.10', '10.0.0.9'] };
    expect(await lookUp('10.0.0.9')).toMatchObject({ hold });
  });

  test('if one of the items is already allocated, kbctl allocate allocates nothing, and the error names this item', async () => {
    expect(await allocate('ip', CLUSTER, '10.0.0.11', '10.0.0.1')).toEqual(
      ran(1, '', 'error: 10.0.0.1: provided IP is already allocated. Nothing was allocated.\n'),
    );
    expect(await lookUp('10.0.0.11')).toMatchObject({ taken: false });
  });

  test('kbctl allocate -o json prints the whole answer of an allocation of ports', async () => {
    const { items, ...answer } = documentIn(await allocate('port', CLUSTER, '--count', '3', '-o', 'json'));
    expect(answer).toMatchObject({ apiVersion: 'kbctl/v1', kind: 'Allocation', cluster: CLUSTER, outcome: 'done' });
    const ports = items.map(({ value }: { readonly value: number }) => value);
    expect(new Set(ports).size).toBe(3);
    expect(await (await portsOf(world().table)).heldBy(answer.requestId)).toEqual(ports.map(String));
  });

  test('if a request id is repeated, kbctl allocate allocates nothing more', async () => {
    const words = ['ip', CLUSTER, '--hold', '1h', '--owner', 'ci', '--request-id', 'once'];
    const first = await allocate(...words);
    const again = await allocate(...words);
    expect(again).toMatchObject(ran(0, first.stdout, expect.stringContaining('Already done')));
    const refusal = 'another request to cluster prod-eu-1 of the last 24 hours has the requestId once';
    expect(await allocate(...words, '--count', '2')).toEqual(failed(2, refusal));
  });

  const both = 'Use either --count and --secondary, or the cluster IPs.';
  test.each<[string, string[], number, string]>([
    ['an owner of 10 KB', ['--owner', 'x'.repeat(10_240)], 2, 'hold.owner is not 1 to 63 of'],
    ['a count together with values', ['10.0.0.20', '--count', '2'], 2, both],
    ['an invalid request id', ['--request-id', 'a/b'], 2, 'requestId is not 1 to 63 of'],
    ['--secondary for a cluster with one range', ['--secondary'], 3, 'it has no secondaryserviceips'],
  ])('kbctl allocate refuses %s', async (_, words, code, message) => {
    expect(await allocate('ip', CLUSTER, ...words)).toMatchObject(failed(code, message));
  });

  test('kbctl release releases held items that no Service has, and skips free items', async () => {
    await allocate('ip', CLUSTER, '10.0.0.9');
    expect(await release('ip', CLUSTER, '10.0.0.9', '10.0.0.4')).toEqual(
      ran(0, '10.0.0.9 released\n10.0.0.4 was free\n', expect.stringContaining(world().server)),
    );
    const found = await lookUp('10.0.0.9');
    expect(found).toMatchObject({ taken: false });
    expect(found).not.toHaveProperty('hold');
  });

  test('kbctl release --dry-run needs no --yes: it prints the items to release, and releases nothing', async () => {
    expect(await release('ip', CLUSTER, '10.0.0.1', '--dry-run')).toEqual(
      ran(0, '10.0.0.1 released (dry run)\n', 'Dry run: nothing was released. Services were not read.\n'),
    );
  });

  test('kbctl release --owner releases an item only if the named owner holds it', async () => {
    expect(await allocate('ip', CLUSTER, '10.0.0.5', '--owner', 'ci')).toMatchObject({ code: 0 });
    const held = async () => ((await lookUp('10.0.0.5')) as { readonly hold?: object }).hold;
    const refused = failed(1, 'Not all were released.');
    expect(await release('ip', CLUSTER, '10.0.0.5', '--owner', 'another-owner')).toEqual(refused);
    expect(await held()).toMatchObject({ owner: 'ci' });
    expect(await release('ip', CLUSTER, '10.0.0.5', '--owner', 'ci')).toMatchObject({ code: 0 });
    expect(await held()).toBeUndefined();
  });

  test('kbctl release releases an item of a Service only with --yes', async () => {
    expect(await release('ip', CLUSTER, '10.0.0.1')).toMatchObject(
      ran(2, '', expect.stringMatching(/error: Service default\/kubernetes has 10\.0\.0\.1\. .*--yes/)),
    );
    expect(await lookUp('10.0.0.1')).toMatchObject({ taken: true });
    expect(documentIn(await release('ip', CLUSTER, '10.0.0.1', '--yes', '-o', 'json'))).toMatchObject({
      kind: 'Release',
      items: [{ range: 'serviceips', value: '10.0.0.1', outcome: 'released' }],
    });
  });

  test.each([
    ['the cluster is in mode observe', { mode: 'observe' }, 'nothing is allocated or released until its spec has'],
    ['API servers allocate without ServiceCIDRs', { allocator: 'apiserver' }, 'have no ServiceCIDRs'],
  ])('kbctl neither allocates nor releases an address if %s', async (_, fields, message) => {
    await world().register(fields);
    expect(await allocate('ip', CLUSTER)).toEqual(failed(3, message));
    expect(await release('ip', CLUSTER, '10.0.0.10')).toEqual(failed(3, message));
  });

  test('if the API servers allocate, kbctl allocate holds an address in the API server, and kbctl get holds lists the address until its release', async () => {
    await world().register({ allocator: 'apiserver' });
    const { store } = world().standIn;
    const metadata = { name: 'kubernetes', uid: 'cidr', resourceVersion: '1' };
    store.insert(SERVICE_CIDRS, { metadata, ...{ spec: { cidrs: ['10.0.0.0/24'] } } });
    expect(await allocate('ip', CLUSTER, '10.0.0.12', '--owner', 'shop', '--hold', 'forever')).toMatchObject(
      ran(0, '10.0.0.12\n', expect.stringContaining('Held for shop without end.')),
    );
    expect(await allocate('ip', CLUSTER, '10.0.0.13', '--hold', '1h')).toEqual(
      failed(3, 'this hold would never end. Allow them'),
    );
    const before = await readRunRecord(world().table, CLUSTER, 'cluster-ip-repair');
    const record = aRunRecord(Date.now(), { state: { mayEndHolds: true } });
    await writeRunRecord(world().table, CLUSTER, 'cluster-ip-repair', record, before?.item);
    expect(await allocate('ip', CLUSTER, '10.0.0.12')).toMatchObject(
      failed(1, '10.0.0.12: provided IP is already allocated. Nothing was allocated.'),
    );
    const hold = /\nServiceCIDRs +shop +never +any Service, after release +10\.0\.0\.12\n/;
    expectPrinted(await world().kbctl(['get', 'holds', CLUSTER]), 0, hold);
    const terms = /hold +by shop, without end; release it for its Service; request\s+kbctl-/;
    expectPrinted(await world().kbctl(['show', 'ip', CLUSTER, '10.0.0.12']), 0, /^10\.0\.0\.12 {2}held\n/, terms);
    expect(await allocate('port', CLUSTER)).toMatchObject(failed(3, 'no object can hold a node port'));
    expect(await release('ip', CLUSTER, '10.0.0.12')).toMatchObject({ code: 0, stdout: '10.0.0.12 released\n' });
    expect((await world().kbctl(['get', 'holds', CLUSTER])).stdout).not.toContain('ServiceCIDRs');
  });

  const unknown =
    /^.* \(kubeconfig .*\)\nerror: .* Its outcome is unknown: run the command again with --request-id kbctl-\S+ .*\n$/;
  const missing = /^error: kubeconfig \S+missing: cannot read \S+ \(ENOENT\)\. Name a file .* may read\.\n$/;
  test.each<[string, () => string, number, RegExp]>([
    ['how to repeat the request if the API server does not answer', () => world().unreachableCluster(), 4, unknown],
    ['only the reason if the kubeconfig cannot be read', () => 'missing', 3, missing],
  ])('if the API servers allocate, kbctl allocate prints %s', async (_, kubeconfig, code, printed) => {
    await world().register({ allocator: 'apiserver' });
    const allocated = await allocate('ip', CLUSTER, '--kubeconfig', kubeconfig());
    expect(allocated).toMatchObject(ran(code, '', expect.stringMatching(printed)));
  });

  test('the output of kbctl get holds contains the held items, their owners and the ends of the holds', async () => {
    const { table } = world();
    const untilMs = Date.now() + HOUR_MS;
    const ci = { owner: 'ci', untilMs, takenUpBy: 'any', requestId: 'request-1' } as const;
    await (await addressesOf(table)).allocate(['10.0.0.9', '10.0.0.10'], { hold: ci });
    const forGood = { owner: 'balancer', takenUpBy: 'owner' } as const;
    await (await portsOf(table)).allocate(['30080'], { hold: forGood });
    const until = new Date(untilMs).toISOString();
    expect(documentIn(await world().kbctl(['get', 'holds', '-o', 'json']))).toMatchObject({
      kind: 'HoldList',
      items: [
        { cluster: CLUSTER, key: 'ranges/serviceips', items: ['10.0.0.9', '10.0.0.10'], owner: 'ci', until },
        { key: 'ranges/servicenodeports', items: ['30080'], owner: 'balancer' },
      ],
    });
    // No row is padded to the longest list of items.
    const rows = /^RANGE +OWNER +ENDS +TAKEN UP BY +ITEMS\n.* 10\.0\.0\.9,10\.0\.0\.10\n/;
    expectPrinted(await world().kbctl(['get', 'holds', CLUSTER]), 0, rows);
  });
});
