import { describe, expect, test } from '@jest/globals';
import { FAMILY_LABEL, type KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { ClusterError, type ClusterPort, type ObjectRef } from '../../lib/kubernetes/cluster-port.ts';
import { withholdWrites } from '../../lib/kubernetes/withhold-writes.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { ipAddressOfHold } from '../../lib/range/hold-ip-address.ts';
import { brokenList } from '../repair/services.ts';
import type { MemoryCluster } from '../support/memory-cluster.ts';
import { PassWorld } from '../support/pass-world.ts';
import { stockCidr, stockRecord, stockService } from '../support/stock-objects.ts';

const ITEM = '10.0.0.5';
const S = { kind: 'Service', namespace: 'a', name: 's' } as const;
const IP_ADDRESS = { kind: 'IPAddress', name: ITEM } as const;
const SERVICE_CIDR = stockCidr('10.0.0.0/24');
const SECOND_CIDR = { ...stockCidr('10.5.0.0/24'), metadata: { name: 'second' } };
const service = stockService;

function ipAddress(of: string, address: string = ITEM, labels: Record<string, string> = {}): KubernetesObject {
  const { metadata, ...record } = stockRecord(address, `a/${of}`);
  return { ...record, metadata: { ...metadata, labels: { ...metadata.labels, ...labels } } };
}

/**
 * Runs a pass over a cluster with these objects, in which no API server repairs the IPAddresses. A pass without writes,
 * 65 s earlier, has seen the objects.
 */
async function passOver(
  objects: readonly KubernetesObject[],
  { ipAddresses = true, mode = 'enforce', spoil = {}, ownCidrs = false }: Options = {},
) {
  const placed = ownCidrs ? objects : [SERVICE_CIDR, SECOND_CIDR, ...objects];
  const world = new PassWorld({ mode, repair: { ipAddresses } }, placed.map(longAgo));
  const { cluster } = world;
  await world.pass(clusterIpRepair, { kubernetes: withholdWrites(cluster.port, () => {}) });
  cluster.reads.length = 0;
  world.wouldWrite.length = 0;
  world.nowMs = NOW_MS;
  const port = typeof spoil === 'function' ? spoil(cluster) : spoil;
  const report = await world.pass(clusterIpRepair, { kubernetes: { ...cluster.port, ...port } });
  const changed = cluster.writes.filter((write) => write.endsWith('ipaddresses'));
  return { report, cluster, changed, wouldWrite: world.wouldWrite };
}

function longAgo<T extends KubernetesObject>(object: T): T {
  return { ...object, metadata: { ...object.metadata, creationTimestamp: '1970-01-01T00:00:00Z' } };
}

const NOW_MS = 1_000_000_000 + 65_000;

interface Options {
  readonly ipAddresses?: boolean;
  /** True if `objects` contains the ServiceCIDRs. */
  readonly ownCidrs?: boolean;
  readonly mode?: 'observe' | 'enforce';
  readonly spoil?: Partial<ClusterPort> | ((cluster: MemoryCluster) => Partial<ClusterPort>);
}

/** Makes the API server refuse a read of this object as too large. */
const unreadable =
  (isAbout: (ref: ObjectRef) => boolean) =>
  ({ port }: MemoryCluster): Partial<ClusterPort> => ({
    get: async (ref) => {
      if (isAbout(ref)) throw new ClusterError('ReplyTooLarge', 'more than 2 MiB');
      return port.get(ref);
    },
  });

/** Changes the cluster after the pass has listed the Services. */
const afterList =
  (change: (cluster: MemoryCluster) => void) =>
  (cluster: MemoryCluster): Partial<ClusterPort> => ({
    async *services() {
      yield* cluster.port.services();
      change(cluster);
    },
  });

/** Lets no write of the IPAddress reach the API server. */
const webhookIsDown: MemoryCluster['beforeWrite'] = (_, { metadata: { name } }) => {
  if (name === ITEM) throw new ClusterError('Unavailable', 'failed calling webhook');
  return undefined;
};

const [NOT_ALLOCATED, DUPLICATE] = ['ClusterIPNotAllocated', 'ClusterIPAlreadyAllocated'];
const [UNALLOCATED, WRONG] = ['IPAddressNotAllocated', 'IPAddressWrongReference'];
/** Two Services with one address in two spellings. */
const odds = [service('s', '10.0.0.005'), service('t', ITEM)];
const twins = [service('s', ITEM), service('t', ITEM)];
const mislabelled = ipAddress('s', ITEM, { [FAMILY_LABEL]: 'IPv6' });

describe('a pass over the IPAddresses of a cluster', () => {
  test('a pass without repair.ipAddresses only reports an address without an IPAddress, and writes neither the IPAddress nor an event', async () => {
    const { report, changed } = await passOver([service('s', ITEM)], { ipAddresses: false });
    expect(report).toMatchObject({ findings: [{ type: 'notRecorded', item: ITEM, service: 'a/s' }], errors: [] });
    expect(report.findings[0]).not.toHaveProperty('event');
    expect(changed).toEqual([]);
  });

  test.each<[string, readonly KubernetesObject[], readonly string[], readonly string[], KubernetesObject | undefined]>([
    ['creates the missing IPAddress of a Service', [service('s', ITEM)], ['create'], [NOT_ALLOCATED], ipAddress('s')],
    [
      'replaces an IPAddress that references a Service without the address',
      [service('s', ITEM), service('other', '10.0.0.6'), ipAddress('other'), ipAddress('other', '10.0.0.6')],
      ['delete', 'create'],
      [WRONG],
      ipAddress('s'),
    ],
    [
      'replaces an IPAddress that references a headless Service, which no list contains',
      [service('s', ITEM), service('headless', 'None'), ipAddress('headless')],
      ['delete', 'create'],
      [WRONG],
      ipAddress('s'),
    ],
    ['corrects wrong labels of an IPAddress', [service('s', ITEM), mislabelled], ['patch'], [], ipAddress('s')],
    ['keeps the IPAddress of the first of two Services', [...odds, ipAddress('s')], [], [DUPLICATE], ipAddress('s')],
    ['creates one IPAddress for two Services', twins, ['create'], [NOT_ALLOCATED, DUPLICATE], ipAddress('s')],
    ['deletes the IPAddress of a missing Service', [ipAddress('gone')], ['delete'], [UNALLOCATED], undefined],
  ])('a pass with repair.ipAddresses %s', async (_, objects, verbs, reasons, after) => {
    const { report, cluster, changed } = await passOver(objects);
    expect(changed).toEqual(verbs.map((verb) => `${verb} ipaddresses`));
    expect(report.errors).toEqual([]);
    expect(report.findings.map(({ event }) => event?.reason)).toEqual(reasons);
    const found = cluster.find(IP_ADDRESS);
    if (after === undefined) expect(found).toBeUndefined();
    else expect(found).toMatchObject(after);
  });

  test('if a ServiceCIDR was created during a pass, the pass does not report the addresses in that ServiceCIDR', async () => {
    const objects = [SERVICE_CIDR, service('s', '10.5.0.9'), ipAddress('s', '10.5.0.9')];
    const spoil = ({ place, port }: MemoryCluster): Partial<ClusterPort> => ({
      services: (listed) => {
        place(SECOND_CIDR);
        return port.services(listed);
      },
    });
    expect((await passOver(objects, { ownCidrs: true, spoil })).report).toMatchObject({ findings: [], errors: [] });
  });

  test('a pass keeps an IPAddress with a wrong reference if the API server refuses its replacement, so that the address does not become free', async () => {
    const spoil: Partial<ClusterPort> = { create: async () => ({ outcome: 'invalid', message: 'not by policy' }) };
    const { report, cluster } = await passOver([service('s', ITEM), ipAddress('gone')], { spoil });
    expect(report.findings.map(({ type }) => type)).toContain('notCorrected');
    expect(cluster.find(IP_ADDRESS)).toMatchObject(ipAddress('gone'));
  });

  test.each<[string, KubernetesObject, (cluster: MemoryCluster) => void]>([
    ['a Service that was deleted', service('s', ITEM), ({ remove }) => remove(S)],
    ['the IPAddress of a Service that was created', ipAddress('s'), ({ place }) => place(service('s', ITEM))],
  ])('a pass neither reports nor changes %s after the Services were listed', async (_, object, change) => {
    const { report, changed } = await passOver([object], { spoil: afterList(change) });
    expect([report.findings, changed]).toEqual([[], []]);
  });

  test('if a policy forbids one correction, a pass makes all other corrections and reports the refusal', async () => {
    const spoil = { create: () => Promise.reject(new ClusterError('Forbidden', 'not allowed')) };
    const { report } = await passOver([service('s', ITEM), ipAddress('gone', '10.0.0.6')], { spoil });
    const message = `IPAddress ${ITEM} is not corrected (create): not allowed`;
    expect(report).toMatchObject({ errors: [], changes: ['deleted IPAddress 10.0.0.6'] });
    expect(report.findings).toContainEqual({ type: 'notCorrected', message, item: ITEM, service: 'a/s' });
  });

  test('if a pass can list a Service but cannot get that Service, the pass still creates the IPAddress of the Service', async () => {
    const spoil = unreadable(({ kind }) => kind === 'Service');
    const { report } = await passOver([service('odd', ITEM)], { spoil });
    expect(report).toMatchObject({ errors: [], findings: [{ type: 'notRecorded', service: 'a/odd' }] });
    expect(report.changes).toContain(`created IPAddress ${ITEM} for Service a/odd`);
  });

  test('if the role does not allow a kind of correction, a pass tries this kind once, reports one finding, and makes the allowed corrections', async () => {
    const why =
      'ipaddresses is forbidden: User "u" cannot create resource "ipaddresses" in API group "networking.k8s.io"';
    let tries = 0;
    const create = () => {
      tries += 1;
      return Promise.reject(new ClusterError('Forbidden', why));
    };
    const missing = [service('s', ITEM), service('t', '10.0.0.7'), ipAddress('gone', '10.0.0.6')];
    const { report } = await passOver(missing, { spoil: { create } });
    const message = `IPAddresses are not corrected (create): ${why}`;
    const finding = { type: 'notCorrected', item: 'ipaddresses', message };
    expect(report.findings.filter(({ type }) => type === 'notCorrected')).toEqual([finding]);
    expect([tries, report.errors]).toEqual([1, []]);
    expect(report.changes).toContain('deleted IPAddress 10.0.0.6');
  });

  test('if a pass cannot read a Service, the pass does not delete the IPAddress of the Service, and reports a finding', async () => {
    const spoil = unreadable(({ name }) => name === 'odd');
    const { report, cluster } = await passOver([ipAddress('odd'), ipAddress('gone', '10.0.0.6')], { spoil });
    expect(report.errors).toEqual([]);
    expect(report.findings).toContainEqual(expect.objectContaining({ type: 'notCorrected', item: ITEM }));
    expect(cluster.find(IP_ADDRESS)).toBeDefined();
    expect(report.changes).toContain('deleted IPAddress 10.0.0.6');
  });

  /** Runs passes over these objects while a webhook does not answer writes of the first of three IPAddresses. */
  async function passesWithoutWebhook(passes: number, ofItem: (item: string) => KubernetesObject) {
    const items = [ITEM, '10.0.0.6', '10.0.0.7'];
    const world = new PassWorld({ repair: { ipAddresses: true } }, [SERVICE_CIDR, ...items.map(ofItem)]);
    const { cluster } = world;
    cluster.beforeWrite = webhookIsDown;
    const pass = () => world.pass(clusterIpRepair);
    for (let count = 1; count <= passes; count++)
      expect((await pass()).errors).toMatchObject([{ code: 'Unavailable' }]);
    cluster.beforeWrite = undefined;
    return { pass, recorded: () => items.map((name) => cluster.find({ kind: 'IPAddress', name }) !== undefined) };
  }

  test('if a webhook does not answer a correction, the next pass continues with the next correction', async () => {
    const { pass, recorded } = await passesWithoutWebhook(2, (item) => service(`s-${item}`, item));
    expect(recorded()).toEqual([false, true, true]);
    await pass();
    expect(recorded()).toEqual([true, true, true]);
  });

  test('if a webhook does not answer when a pass ends a hold, later passes still end the remaining expired holds', async () => {
    const ended = { owner: 'shop', takenUpBy: 'any', untilMs: 1 } as const;
    const { recorded } = await passesWithoutWebhook(3, (item) => ipAddressOfHold(item, ended));
    expect(recorded()).toEqual([true, false, false]);
  });

  test('a pass keeps the IPAddress of a deleted Service if another Service with this address cannot be read again', async () => {
    const spoil = unreadable(({ name }) => name === 'odd');
    const { report, cluster } = await passOver([service('odd', ITEM), ipAddress('gone')], { spoil });
    expect(report.findings).toMatchObject([{ type: 'notCorrected', item: ITEM }]);
    expect(cluster.find(IP_ADDRESS)).toBeDefined();
  });

  test('a pass that loses the connection fails, and still reports its findings and changes', async () => {
    const spoil = { delete: () => Promise.reject(new ClusterError('Unavailable', 'no answer')) };
    const { report } = await passOver([service('s', ITEM), ipAddress('gone', '10.0.0.6')], { spoil });
    expect(report.errors).toMatchObject([{ code: 'Unavailable' }]);
    expect(report.changes).toContain(`created IPAddress ${ITEM} for Service a/s`);
    expect(report.findings.map(({ type }) => type)).toEqual(['notRecorded', 'leakedRecord']);
  });

  test('a pass over 60,000 leaked IPAddresses reports and deletes 200, stores the uids of 200 others, and only counts the remaining 59,600', async () => {
    const nameOf = (n: number) => `10.5.${n >> 8}.${n & 255}`;
    const range = { ...SERVICE_CIDR, spec: { cidrs: ['10.5.0.0/16'] } };
    const first = Array.from({ length: 200 }, (_, n) => ipAddress('gone', nameOf(n + 1)));
    const spoil = ({ port }: MemoryCluster) => ({
      async *ipAddresses() {
        const listed = (await Array.fromAsync(port.ipAddresses())).flat();
        yield listed;
        const [each] = listed.slice(-1);
        if (each === undefined) return;
        for (let n = 200; n < 60_000; n += 1) yield [{ ...each, name: nameOf(n + 1), uid: `uid of ${n}` }];
      },
    });
    const { report, changed } = await passOver([range, ...first], { ownCidrs: true, spoil });
    expect(report).toMatchObject({ errors: [], counts: { ipAddresses: 60_000 } });
    expect([report.findings.length, report.unlisted?.get('leakedRecord')]).toEqual([200, 59_600]);
    expect(changed).toEqual(Array(200).fill('delete ipaddresses'));
  });

  test('a pass without the permission to list IPAddresses succeeds, reports the resolution, and counts only the addresses of Services', async () => {
    const spoil = { ipAddresses: () => brokenList('Forbidden') };
    const { report } = await passOver([service('s', ITEM), ipAddress('t', '10.0.0.6')], { spoil });
    const findings = [{ type: 'other', message: expect.stringContaining('deploy/rbac.yaml') }];
    expect(report).toMatchObject({ findings, errors: [], counts: { allocated: 1, capacity: 508 } });
  });

  test('a pass fails and corrects nothing if the list of IPAddresses is incomplete', async () => {
    const spoil = { ipAddresses: () => brokenList('Unavailable') };
    const { report, changed } = await passOver([service('s', ITEM)], { spoil });
    expect(report.errors).toMatchObject([{ code: 'Unavailable' }]);
    expect(changed).toEqual([]);
  });

  test('the findings about Services have the same text if a pass cannot list IPAddresses', async () => {
    const outside = [service('s', '172.20.0.1'), service('t', ITEM), ipAddress('t')];
    const spoil = { ipAddresses: () => brokenList('Throttled') };
    const throttled = await passOver(outside, { spoil });
    expect(throttled.report.findings).toEqual((await passOver(outside)).report.findings);
    expect(throttled.report.findings).toHaveLength(1);
    expect(throttled.report.state).toBeDefined();
  });
});

const ended = { owner: 'shop', takenUpBy: 'any', untilMs: NOW_MS - 5_000 } as const;
const held = [
  ipAddressOfHold('10.0.0.1', ended),
  ipAddressOfHold('10.0.0.2', { ...ended, untilMs: ended.untilMs + 1 }),
  ipAddressOfHold('10.0.0.3', { owner: 'shop', takenUpBy: 'any' }),
];
const remaining = ({ cluster }: { readonly cluster: MemoryCluster }) =>
  [1, 2, 3].filter((host) => cluster.find({ kind: 'IPAddress', name: `10.0.0.${host}` }) !== undefined);

test('with and without repair.ipAddresses, a pass releases an address 5 s after its hold expired, and not before', async () => {
  for (const ipAddresses of [false, true]) {
    const passed = await passOver(held, { ipAddresses });
    expect(passed.report).toMatchObject({ findings: [], errors: [], counts: { ipAddresses: 3 } });
    expect(passed.report.changes).toContain('released 10.0.0.1, whose hold of shop expired');
    expect(remaining(passed)).toEqual([2, 3]);
  }
});

test('a pass in mode observe only reports which IPAddresses it would create and release', async () => {
  const passed = await passOver([...held, service('s', ITEM)], { mode: 'observe' });
  expect(passed.wouldWrite).toEqual([
    `create IPAddress ${ITEM}: metadata.labels.ipaddress.kubernetes.io/ip-family + "IPv4"; metadata.labels.ipaddress.kubernetes.io/managed-by + "ipallocator.k8s.io"; spec.parentRef.group + ""; spec.parentRef.resource + "services"; spec.parentRef.namespace + "a"; spec.parentRef.name + "s"`,
    expect.stringMatching(/^delete IPAddress 10\.0\.0\.1: .*spec\.parentRef\.name - "shop"$/),
  ]);
  expect(passed.changed).toEqual([]);
});

test('if a Service has a held address, a pass does not end the hold, so that the address does not become free', async () => {
  const { report, cluster } = await passOver([...held, service('s', '10.0.0.001')], { ipAddresses: false });
  expect(remaining({ cluster })).toEqual([1, 2, 3]);
  const message = 'The hold of shop on 10.0.0.1 expired and is not released: Service a/s has the address.';
  expect(report.findings).toMatchObject([{ type: 'notRecorded' }, { type: 'notCorrected', message }]);
  const { cluster: corrected } = await passOver([...held, service('s', '10.0.0.001')]);
  expect(corrected.find({ kind: 'IPAddress', name: '10.0.0.1' })).toMatchObject(ipAddress('s', '10.0.0.1'));
});

test('if the API server refuses to end a hold, a pass reports a finding and still checks the other addresses', async () => {
  const spoil = { delete: () => Promise.reject(new ClusterError('Forbidden', 'no right')) };
  const { report } = await passOver([...held, service('s', ITEM)], { ipAddresses: false, spoil });
  expect(report.errors).toEqual([]);
  const message = 'The hold of shop on 10.0.0.1 expired and is not released: no right';
  const finding = { type: 'notCorrected', item: '10.0.0.1', message };
  expect(report.findings).toMatchObject([{ type: 'notRecorded' }, finding]);
});

test.each([true, false])('a pass reports an expired hold only if RBAC forbids ending it (allowed: %s)', async (may) => {
  const { report, changed } = await passOver(held, { ipAddresses: false, spoil: { allows: async () => may } });
  expect(report).toMatchObject({ errors: [], state: { mayEndHolds: may } });
  const message = expect.stringContaining('Allow them "delete"');
  const finding = { type: 'notCorrected', item: '10.0.0.1', message };
  expect(report.findings).toEqual(may ? [] : [finding]);
  expect(changed).toEqual(may ? ['delete ipaddresses'] : []);
});

test('a pass reads the IPAddresses only once if none of them is held', async () => {
  const { cluster } = await passOver([service('s', ITEM), ipAddress('s')]);
  // `cluster.reads` contains `list ipaddresses` for each time that the IPAddresses are read.
  expect(cluster.reads.filter((read) => read === 'list ipaddresses')).toHaveLength(1);
});

test('a pass that cannot check its permissions still makes all corrections and ends holds', async () => {
  const spoil = { allows: () => Promise.reject(new ClusterError('Rejected', 'no reviews here')) };
  const passed = await passOver([...held, service('s', ITEM)], { spoil });
  expect(passed.report).toMatchObject({ errors: [] });
  expect(passed.report.state).not.toHaveProperty('mayEndHolds');
  expect(passed.report.changes).toContain('released 10.0.0.1, whose hold of shop expired');
  expect(passed.changed).toContain('create ipaddresses');
});
