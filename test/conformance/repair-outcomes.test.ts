import { describe, expect, test } from '@jest/globals';
import type { Loop } from '../../lib/cluster/cluster-spec.ts';
import { type StoredService, storedService } from '../support/etcd-client.ts';
import { runningControlPlane, runningHandlers } from './running-control-plane.ts';

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

/** The repairs of upstream also run on this server. Their events have another `reportingController`. */
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

/** The Service, reason, action and note of each event, in the order of the Services. */
const REPORTED: Readonly<Record<Repair, readonly string[]>> = {
  'cluster-ip-repair': [
    'ip-duplicate-b ClusterIPAlreadyAllocated ClusterIPAllocation: Cluster IP [IPv4]:10.0.0.50 was assigned to multiple services; please recreate service',
    'ip-foreign ClusterIPNotValid ClusterIPValidation: Cluster IP 2001:db8::1(IPv6) is of ip family that is no longer configured on cluster; please recreate service',
    'ip-invalid ClusterIPNotValid ClusterIPValidation: Cluster IP 10.0.0.300 is not a valid IP; please recreate service',
    'ip-out-of-range ClusterIPOutOfRange ClusterIPAllocation: Cluster IP [IPv4]:192.168.77.7 is not within the service CIDR 10.0.0.0/24; please recreate service',
  ],
  'node-port-repair': [
    'port-duplicate-b PortAlreadyAllocated PortAllocation: Port 30100 was assigned to multiple services; please recreate service',
    'port-out-of-range PortOutOfRange PortAllocation: Port 20000 is not within the port range 30000-32767; please recreate service',
  ],
};

const recordedIP = (name: string, ip: string) =>
  `${name} ClusterIPNotAllocated ClusterIPAllocation: Cluster IP [IPv4]:${ip} is not allocated; repairing`;
const recordedPort = (name: string, port: number) =>
  `${name} PortNotAllocated PortAllocation: Port ${port} is not allocated; repairing`;

const IP_ERRORS = 'apiserver_clusterip_repair_ip_errors_total';
const PORT_ERRORS = 'apiserver_nodeport_repair_port_errors_total';

async function eventsOf(repair: Repair): Promise<Event[]> {
  const { body } = await apiserver.request<{ items: Event[] }>('GET', events);
  return body.items.filter(
    ({ reportingController, reportingInstance }) =>
      reportingController === `kube-bootstrap-controller/${repair}` && reportingInstance === 'test',
  );
}

/** Returns the events of a repair in the form and order of `REPORTED`. */
async function reported(repair: Repair): Promise<string[]> {
  const found = await eventsOf(repair);
  return found
    .map(({ regarding, reason, action, note }) => `${regarding.name} ${reason} ${action}: ${note}`)
    .toSorted();
}

describe('passes of both repairs where the table allocates', () => {
  const handlers = runningHandlers(() => ({
    kubeconfigFile: apiserver.kubeconfigFile,
    spec: { allocator: 'table', apiServers: [{ address: '10.9.8.7' }] },
  }));

  test('an API server accepts the event of a first pass that records the address of the kubernetes Service', async () => {
    const pass = await handlers.run('cluster-ip-repair');

    expect(pass.counters).toEqual({ passes: 1, [`${IP_ERRORS}{type=repair}`]: 1 });
    expect(await reported('cluster-ip-repair')).toEqual([recordedIP('kubernetes', '10.0.0.1')]);
  });

  test('an API server accepts an event for every broken claim and for every claim that a pass records', async () => {
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
    const ofAddresses = [
      ...REPORTED['cluster-ip-repair'],
      recordedIP('ip-duplicate-a', '10.0.0.50'),
      recordedIP('ip-unrecorded', '10.0.0.60'),
      recordedIP('kubernetes', '10.0.0.1'),
    ];
    expect(await reported('cluster-ip-repair')).toEqual(ofAddresses.toSorted());
    const recorded = [recordedPort('port-duplicate-a', 30_100), recordedPort('port-new', 30_200)];
    const ofPorts = [...REPORTED['node-port-repair'], ...recorded];
    expect(await reported('node-port-repair')).toEqual(ofPorts.toSorted());
    const [event] = await eventsOf('node-port-repair');
    expect(event).toMatchObject({
      type: 'Warning',
      regarding: { kind: 'Service', uid: `uid-of-default-${event?.regarding.name}` },
    });
    expect(event?.series).toBeUndefined();
  });

  test('an API server accepts the series of an event for each repeated finding', async () => {
    handlers.advance(INTERVAL_MS);

    const passes = [await handlers.tick('cluster-ip-repair'), await handlers.tick('node-port-repair')];

    expect(passes.flatMap(({ findings }) => findings).filter((finding) => finding.startsWith('repair'))).toEqual([]);
    for (const repair of ['cluster-ip-repair', 'node-port-repair'] as const) {
      const again = (await eventsOf(repair)).filter(({ series }) => series?.count === 2);
      const names = again.map(({ regarding }) => regarding.name).sort();
      expect(names).toEqual(REPORTED[repair].map((text) => text.split(' ')[0]));
    }
  });
});
