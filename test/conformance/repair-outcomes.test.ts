import { expect, test } from '@jest/globals';
import type { EventsV1Event } from '@kubernetes/client-node';
import type { WholeObject } from '../../lib/cluster/kubernetes-objects.ts';
import type { Loop } from '../../lib/spec/cluster-spec.ts';
import { type StoredService, storedService } from '../support/etcd-client.ts';
import { runningControlPlane, runningHandlers } from './running-control-plane.ts';

type Repair = Extract<Loop, 'cluster-ip-repair' | 'node-port-repair'>;

type Event = WholeObject<EventsV1Event>;

const INTERVAL_MS = 180_000;
const EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events';

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

/** The Service and reason of each event that every pass repeats. The golden cases have the texts of the events. */
const REPORTED: Readonly<Record<Repair, readonly string[]>> = {
  'cluster-ip-repair': [
    'ip-duplicate-b ClusterIPAlreadyAllocated',
    'ip-foreign ClusterIPNotValid',
    'ip-invalid ClusterIPNotValid',
    'ip-out-of-range ClusterIPOutOfRange',
  ],
  'node-port-repair': ['port-duplicate-b PortAlreadyAllocated', 'port-out-of-range PortOutOfRange'],
};

async function eventsOf(repair: Repair): Promise<Event[]> {
  const { body } = await apiserver.request<{ items: Event[] }>('GET', EVENTS);
  return body.items.filter(
    ({ reportingController, reportingInstance }) =>
      reportingController === `kube-bootstrap-controller/${repair}` && reportingInstance === 'test',
  );
}

/** Returns the Service and reason of each event. */
function textsOf(reported: readonly Event[]): string[] {
  return reported.map(({ regarding, reason }) => `${regarding?.name} ${reason}`).toSorted();
}

const handlers = runningHandlers(() => ({
  kubeconfigFile: apiserver.kubeconfigFile,
  spec: { allocator: 'table', apiServers: [{ address: '10.9.8.7' }] },
}));

test('the first pass records the address of the kubernetes Service, and the API server accepts the event of this pass', async () => {
  await handlers.run('cluster-ip-repair');

  expect(await eventsOf('cluster-ip-repair')).toMatchObject([
    {
      regarding: { kind: 'Service', name: 'kubernetes' },
      reason: 'ClusterIPNotAllocated',
      note: 'Cluster IP [IPv4]:10.0.0.1 is not allocated; repairing',
    },
  ]);
});

test('an API server accepts an event for every broken claim and for every claim that a pass records', async () => {
  await etcd.putServices([...BROKEN, withAddress('ip-unrecorded', '10.0.0.60'), withNodePort('port-new', 30_200)]);

  await handlers.run('cluster-ip-repair');
  await handlers.run('node-port-repair');

  const recorded = ['ip-duplicate-a', 'ip-unrecorded', 'kubernetes'].map((name) => `${name} ClusterIPNotAllocated`);
  const ofAddresses = [...REPORTED['cluster-ip-repair'], ...recorded];
  expect(textsOf(await eventsOf('cluster-ip-repair'))).toEqual(ofAddresses.toSorted());
  const ofPorts = ['port-duplicate-a PortNotAllocated', 'port-new PortNotAllocated', ...REPORTED['node-port-repair']];
  const events = await eventsOf('node-port-repair');
  expect(textsOf(events)).toEqual(ofPorts.toSorted());
  const [event] = events;
  expect(event).toMatchObject({
    type: 'Warning',
    regarding: { kind: 'Service', uid: `uid-of-default-${event?.regarding?.name}` },
  });
  expect(event?.series).toBeUndefined();
});

test('for each repeated finding, an API server accepts the series of the event', async () => {
  handlers.advance(INTERVAL_MS);

  const passes = [await handlers.tick('cluster-ip-repair'), await handlers.tick('node-port-repair')];

  expect(passes.flatMap(({ findings }) => findings).filter((finding) => finding.startsWith('repair'))).toEqual([]);
  for (const repair of ['cluster-ip-repair', 'node-port-repair'] as const) {
    const again = (await eventsOf(repair)).filter(({ series }) => series?.count === 2);
    expect(textsOf(again)).toEqual(REPORTED[repair]);
  }
});
