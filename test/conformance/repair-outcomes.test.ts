import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Loop } from '../../lib/cluster/cluster-spec.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { type StoredService, storedService } from '../support/etcd-client.ts';
import { eventually } from '../support/eventually.ts';
import { CLUSTER, type Handlers, startHandlers } from '../support/handlers.ts';
import { allocationsOf, ipRange, portRange, type SingleAllocations } from '../support/ranges.ts';
import { runningControlPlane } from '../support/running-control-plane.ts';

type Repair = Extract<Loop, 'cluster-ip-repair' | 'node-port-repair'>;

interface Event {
  readonly reportingController: string;
  readonly reportingInstance: string;
  readonly reason: string;
  readonly action: string;
  readonly note: string;
  readonly type: string;
  readonly regarding: { readonly kind: string; readonly name: string; readonly uid?: string };
  readonly series?: { readonly count: number };
}

const INTERVAL_MS = 180_000;
const events = '/apis/events.k8s.io/v1/namespaces/default/events';

/** The original's own repairs run on this server too: `reportingController` tells ours apart. */
const { etcd, apiserver } = runningControlPlane();

function withAddress(name: string, address: string): StoredService {
  return storedService('default', name, { clusterIP: address, clusterIPs: [address], ports: [{ port: 80 }] });
}

function withNodePort(name: string, nodePort: number): StoredService {
  const ports = [{ port: 80, nodePort }];
  return storedService('default', name, { type: 'NodePort', clusterIP: 'None', clusterIPs: ['None'], ports });
}

const BROKEN = [
  withAddress('ip-duplicate-a', '10.0.0.50'),
  withAddress('ip-duplicate-b', '10.0.0.50'),
  withAddress('ip-foreign', '2001:db8::1'),
  withAddress('ip-invalid', '10.0.0.300'),
  withAddress('ip-out-of-range', '192.168.77.7'),
  withNodePort('port-duplicate-a', 30_100),
  withNodePort('port-duplicate-b', 30_100),
  withNodePort('port-out-of-range', 20_000),
];

/** What is reported of them where the table allocates, and of ports in both modes: Service, reason, action and note, by Service. */
const REPORTED: Readonly<Record<Repair, readonly (readonly string[])[]>> = {
  'cluster-ip-repair': [
    [
      'ip-duplicate-b',
      'ClusterIPAlreadyAllocated',
      'ClusterIPAllocation',
      'Cluster IP [IPv4]:10.0.0.50 was assigned to multiple services; please recreate service',
    ],
    [
      'ip-foreign',
      'ClusterIPNotValid',
      'ClusterIPValidation',
      'Cluster IP 2001:db8::1(IPv6) is of ip family that is no longer configured on cluster; please recreate service',
    ],
    [
      'ip-invalid',
      'ClusterIPNotValid',
      'ClusterIPValidation',
      'Cluster IP 10.0.0.300 is not a valid IP; please recreate service',
    ],
    [
      'ip-out-of-range',
      'ClusterIPOutOfRange',
      'ClusterIPAllocation',
      'Cluster IP [IPv4]:192.168.77.7 is not within the service CIDR 10.0.0.0/24; please recreate service',
    ],
  ],
  'node-port-repair': [
    [
      'port-duplicate-b',
      'PortAlreadyAllocated',
      'PortAllocation',
      'Port 30100 was assigned to multiple services; please recreate service',
    ],
    [
      'port-out-of-range',
      'PortOutOfRange',
      'PortAllocation',
      'Port 20000 is not within the port range 30000-32767; please recreate service',
    ],
  ],
};

/** What is reported of them where the API servers allocate: with the words of upstream's repair of IPAddresses. */
const AUDITED: typeof REPORTED = {
  ...REPORTED,
  'cluster-ip-repair': [
    [
      // The API server's own repair records the address for either.
      'ip-duplicate-?',
      'ClusterIPAlreadyAllocated',
      'ClusterIPAllocation',
      'Cluster IP [IPv4]:10.0.0.50 was assigned to multiple services; please recreate service',
    ],
    [
      'ip-foreign',
      'ClusterIPOutOfRange',
      'ClusterIPAllocation',
      'Cluster IP [IPv6]: 2001:db8::1 is not within any configured Service CIDR; please recreate service',
    ],
    [
      'ip-invalid',
      'ClusterIPNotValid',
      'ClusterIPValidation',
      'Cluster IP 10.0.0.300 is not a valid IP; please recreate Service',
    ],
    [
      'ip-out-of-range',
      'ClusterIPOutOfRange',
      'ClusterIPAllocation',
      'Cluster IP [IPv4]: 192.168.77.7 is not within any configured Service CIDR; please recreate service',
    ],
  ],
};

/** As `AUDITED` names them. */
async function audited(repair: Repair): Promise<string[][]> {
  const found = await reported(repair, 'audit');
  return found.map(([name = '', ...rest]) => [name.replace(/^(ip-duplicate-)[ab]$/, '$1?'), ...rest]);
}

const IP_ERRORS = 'apiserver_clusterip_repair_ip_errors_total';
const PORT_ERRORS = 'apiserver_nodeport_repair_port_errors_total';

async function eventsOf(repair: Repair, instance: string): Promise<Event[]> {
  const { body } = await apiserver.request<{ items: Event[] }>('GET', events);
  return body.items.filter(
    ({ reportingController, reportingInstance }) =>
      reportingController === `kube-bootstrap-controller/${repair}` && reportingInstance === instance,
  );
}

/** In the shape and order of `REPORTED`. */
async function reported(repair: Repair, instance: string): Promise<string[][]> {
  const found = await eventsOf(repair, instance);
  return found.map(({ regarding, reason, action, note }) => [regarding.name, reason, action, note]).sort(byName);
}

function byName([one = '']: readonly string[], [other = '']: readonly string[]): number {
  return one < other ? -1 : 1;
}

function start(instance: string, spec: object): Promise<Handlers> {
  const apiServers = [{ address: '10.9.8.7' }];
  const { kubeconfigFile } = apiserver;
  return startHandlers({ kubeconfigFile, spec: { apiServers, ...spec }, reportingInstance: instance });
}

/** Until the API server's own repair has recorded the addresses that can be: they are no finding then. */
async function untilRecorded(): Promise<void> {
  await eventually(async () =>
    expect(await apiserver.request('GET', '/apis/networking.k8s.io/v1/ipaddresses/10.0.0.50')).toMatchObject({
      status: 200,
    }),
  );
}

describe('the API servers allocate', () => {
  let handlers: Handlers;

  beforeAll(async () => {
    await etcd.putServices(BROKEN);
    handlers = await start('audit', { allocator: 'apiserver' });
    await untilRecorded();
  });
  afterAll(() => handlers?.close());

  test.each<[Repair, Record<string, number>]>([
    [
      'cluster-ip-repair',
      {
        passes: 1,
        [`${IP_ERRORS}{type=duplicate}`]: 1,
        [`${IP_ERRORS}{type=invalid}`]: 1,
        [`${IP_ERRORS}{type=outOfRange}`]: 2,
      },
    ],
    ['node-port-repair', { passes: 1, [`${PORT_ERRORS}{type=duplicate}`]: 1, [`${PORT_ERRORS}{type=outOfRange}`]: 1 }],
  ])('%s reports every broken claim once, and counts it', async (repair, counters) => {
    expect(await eventsOf(repair, 'audit')).toEqual([]);

    const pass = await handlers.run(repair);

    expect(pass).toMatchObject({ summary: { passes: 1, failed: 0 }, counters });
    expect(pass.counters).toEqual(counters);
    expect(await audited(repair)).toEqual(AUDITED[repair]);
    const [event] = await eventsOf(repair, 'audit');
    expect(event).toMatchObject({
      type: 'Warning',
      regarding: { kind: 'Service', uid: `uid-of-default-${event?.regarding.name}` },
    });
    expect(event?.series).toBeUndefined();
  });

  test.each<[Repair]>([['cluster-ip-repair'], ['node-port-repair']])(
    'repeated findings of %s become a series of the same events',
    async (repair) => {
      handlers.advance(INTERVAL_MS);

      const { summary } = await handlers.tick(repair);

      expect(summary).toEqual({ passes: 1, failed: 0, skipped: 0 });
      expect(await audited(repair)).toEqual(AUDITED[repair]);
      const counts = (await eventsOf(repair, 'audit')).map(({ series }) => series?.count);
      expect(new Set(counts)).toEqual(new Set([2]));
    },
  );
});

describe('the table allocates', () => {
  let handlers: Handlers;

  beforeAll(async () => {
    for (const { metadata } of BROKEN) await etcd.delete(`/registry/services/specs/default/${metadata.name}`);
    handlers = await start('table', { allocator: 'table' });
  });
  afterAll(() => handlers?.close());

  test('the first pass records the addresses and ports that are in use', async () => {
    expect(await eventsOf('cluster-ip-repair', 'table')).toEqual([]);

    const pass = await handlers.run('cluster-ip-repair');

    expect(pass.counters).toEqual({ passes: 1, [`${IP_ERRORS}{type=repair}`]: 1 });
    const note = 'Cluster IP [IPv4]:10.0.0.1 is not allocated; repairing';
    expect(await reported('cluster-ip-repair', 'table')).toEqual([
      ['kubernetes', 'ClusterIPNotAllocated', 'ClusterIPAllocation', note],
    ]);
    expect(await handlers.run('node-port-repair')).toMatchObject({ findings: [], counters: { passes: 1 } });
  });

  test('an allocated item without a Service is a leak at the third strike, and free again', async () => {
    const [addresses, ports] = allocations(handlers);
    expect(await addresses.allocateOne('10.0.0.99')).toBeUndefined();
    expect(await ports.allocateOne(30_999)).toBeUndefined();

    const findings = { 'cluster-ip-repair': [] as string[], 'node-port-repair': [] as string[] };
    const counters: Record<string, number> = {};
    for (let strike = 1; strike <= 3; strike++) {
      expect(await addresses.allocateOne('10.0.0.99')).toMatchObject({ code: 'AlreadyAllocated' });
      expect(await ports.allocateOne(30_999)).toMatchObject({ code: 'AlreadyAllocated' });
      handlers.advance(INTERVAL_MS);
      for (const repair of ['cluster-ip-repair', 'node-port-repair'] as const) {
        const pass = await handlers.tick(repair);
        findings[repair].push(...pass.findings.map((finding) => `${strike}: ${finding}`));
        Object.assign(counters, pass.counters);
      }
    }

    expect(findings).toEqual({
      'cluster-ip-repair': [
        '1: mayHaveLeaked: the cluster IP 10.0.0.99 may have leaked: flagging for later clean up',
        '3: leak: the cluster IP 10.0.0.99 appears to have leaked: cleaning up',
      ],
      'node-port-repair': [
        '1: mayHaveLeaked: the node port 30999 may have leaked: flagging for later clean up',
        '3: leak: the node port 30999 appears to have leaked: cleaning up',
      ],
    });
    expect(counters).toMatchObject({ [`${IP_ERRORS}{type=leak}`]: 1, [`${PORT_ERRORS}{type=leak}`]: 1 });
    expect(await addresses.allocateOne('10.0.0.99')).toBeUndefined();
    expect(await ports.allocateOne(30_999)).toBeUndefined();
    await Promise.all([addresses.releaseOne('10.0.0.99'), ports.releaseOne(30_999)]);
  });

  test('every broken claim is reported, and an unallocated claim is recorded', async () => {
    await etcd.putServices([...BROKEN, withAddress('ip-unrecorded', '10.0.0.60'), withNodePort('port-new', 30_200)]);

    const passes = [await handlers.run('cluster-ip-repair'), await handlers.run('node-port-repair')];

    expect(passes.map(({ counters }) => counters)).toEqual([
      {
        passes: 1,
        [`${IP_ERRORS}{type=duplicate}`]: 1,
        [`${IP_ERRORS}{type=invalid}`]: 2,
        [`${IP_ERRORS}{type=outOfRange}`]: 1,
        [`${IP_ERRORS}{type=repair}`]: 2,
      },
      {
        passes: 1,
        [`${PORT_ERRORS}{type=duplicate}`]: 1,
        [`${PORT_ERRORS}{type=outOfRange}`]: 1,
        [`${PORT_ERRORS}{type=repair}`]: 2,
      },
    ]);
    const address = (name: string, ip: string) => {
      const note = `Cluster IP [IPv4]:${ip} is not allocated; repairing`;
      return [name, 'ClusterIPNotAllocated', 'ClusterIPAllocation', note];
    };
    const ofAddresses = [
      ...REPORTED['cluster-ip-repair'],
      address('ip-duplicate-a', '10.0.0.50'),
      address('ip-unrecorded', '10.0.0.60'),
      address('kubernetes', '10.0.0.1'),
    ];
    expect(await reported('cluster-ip-repair', 'table')).toEqual(ofAddresses.sort(byName));
    const port = (name: string, number: number) => {
      return [name, 'PortNotAllocated', 'PortAllocation', `Port ${number} is not allocated; repairing`];
    };
    const ofPorts = [...REPORTED['node-port-repair'], port('port-duplicate-a', 30_100), port('port-new', 30_200)];
    expect(await reported('node-port-repair', 'table')).toEqual(ofPorts.sort(byName));
    const [addresses, ports] = allocations(handlers);
    expect(await addresses.allocateOne('10.0.0.60')).toMatchObject({ code: 'AlreadyAllocated' });
    expect(await ports.allocateOne(30_200)).toMatchObject({ code: 'AlreadyAllocated' });
  });

  test('a recorded claim is not reported again, and other findings become a series', async () => {
    handlers.advance(INTERVAL_MS);

    const passes = [await handlers.tick('cluster-ip-repair'), await handlers.tick('node-port-repair')];

    expect(passes.flatMap(({ findings }) => findings).filter((finding) => finding.startsWith('repair'))).toEqual([]);
    for (const repair of ['cluster-ip-repair', 'node-port-repair'] as const) {
      const again = (await eventsOf(repair, 'table')).filter(({ series }) => series?.count === 2);
      const names = again.map(({ regarding }) => regarding.name).sort();
      expect(names).toEqual(REPORTED[repair].map(([name]) => name));
    }
  });
});

describe('a full range', () => {
  let handlers: Handlers;

  beforeAll(async () => {
    await etcd.putServices([2, 3, 4, 5, 6].map((last) => withAddress(`full-${last}`, `10.0.0.${last}`)));
    const serviceNodePortRange = '30100-30100';
    // An audit would use the ranges that the cluster serves.
    const spec = {
      allocator: 'table',
      serviceClusterIPRange: '10.0.0.0/29',
      serviceNodePortRange,
      maxEventsPerPass: 1,
    };
    handlers = await start('full', spec);
  });
  afterAll(() => handlers?.close());

  test('a full range is reported by both repairs without a failure', async () => {
    const passes = [await handlers.run('cluster-ip-repair'), await handlers.run('node-port-repair')];

    expect(passes.map(({ summary }) => summary.failed)).toEqual([0, 0]);
    expect(passes.map(({ findings }) => findings.filter((finding) => finding.startsWith('nothingFree')))).toEqual([
      [expect.stringContaining('nothing is free in the service CIDR 10.0.0.0/29, which has room for 6')],
      [expect.stringContaining('nothing is free in the port range 30100-30100, which has room for 1')],
    ]);
  });

  test('findings over the cap of events are summarized by one more event', async () => {
    const [first, second, ...others] = await eventsOf('cluster-ip-repair', 'full');

    expect(others).toEqual([]);
    const reasons = [first, second].map((event) => [event?.regarding.name, event?.reason]).sort();
    expect(reasons).toEqual([
      [expect.stringMatching(/^(ip|full)-/), expect.stringMatching(/^ClusterIP/)],
      ['kubernetes', 'EventsDropped'],
    ]);
  });
});

function allocations({ table }: Handlers): [SingleAllocations<string>, SingleAllocations<number>] {
  const common = { cluster: CLUSTER, allocator: 'table', rangesGeneration: 1 } as const;
  return [
    allocationsOf(table, { ...common, key: RANGE_KEYS.primary, emptyAllocator: () => ipRange('10.0.0.0/24') }),
    allocationsOf(table, { ...common, key: RANGE_KEYS.nodePorts, emptyAllocator: () => portRange('30000-32767') }),
  ];
}
