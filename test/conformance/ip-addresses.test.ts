import { beforeAll, expect, test } from '@jest/globals';
import type { EventsV1Event, V1IPAddress } from '@kubernetes/client-node';
import type { WholeObject } from '../../lib/cluster/kubernetes-objects.ts';
import { type Etcd, type KubeApiserver, startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { type StoredService, storedService } from '../support/etcd-client.ts';
import { eventually } from '../support/eventually.ts';
import { running } from '../support/running.ts';
import { IPV4_LABELS } from '../support/stock-objects.ts';
import { runningHandlers } from './running-control-plane.ts';

/*
 * Two control planes get the same broken objects. The repair of upstream corrects one, and a pass corrects the other, in which no
 * repair of the API server runs. Each Service has at most one fault of each kind, because upstream repeats the first event of a
 * kind for all faults of that kind. Only the golden cases test "unknown error", because it needs a failing cache.
 */

const IP_ADDRESSES = '/apis/networking.k8s.io/v1/ipaddresses';
const LONG_AGO = '2026-01-01T00:00:00Z';
/** A creation time in the future, so that the grace period never ends during the test. */
const IN_A_CENTURY = '2126-01-01T00:00:00Z';

const service = (name: string, ...clusterIPs: readonly string[]) =>
  storedService('default', name, { type: 'ClusterIP', clusterIP: clusterIPs[0], clusterIPs, ports: [{ port: 80 }] });

/**
 * Returns a Service of type ExternalName that is newer than its IPAddresses, so that only the grace period for ExternalName
 * Services keeps these IPAddresses.
 */
function externalName(name: string): StoredService {
  const stored = storedService('default', name, { type: 'ExternalName', externalName: 'a.test' });
  return { ...stored, metadata: { ...stored.metadata, creationTimestamp: '2127-01-01T00:00:00Z' } };
}

interface StoredAddress {
  readonly parent: string;
  readonly labels?: object;
  readonly created?: string;
  readonly group?: string;
  readonly resource?: string;
}

function storedAddress(name: string, { parent, labels = IPV4_LABELS, created = LONG_AGO, ...others }: StoredAddress) {
  const metadata = { name, uid: `uid-of-${name}`, creationTimestamp: created, labels };
  const parentRef = { group: '', resource: 'services', namespace: 'default', name: parent, ...others };
  return { apiVersion: 'networking.k8s.io/v1', kind: 'IPAddress', metadata, spec: { parentRef } };
}

const OTHER_MANAGER = { ...IPV4_LABELS, 'ipaddress.kubernetes.io/managed-by': 'another' };

interface Row {
  readonly services?: readonly StoredService[];
  readonly addresses?: Readonly<Record<string, StoredAddress>>;
  /** The findings of a pass. */
  readonly found?: readonly string[];
}

const wrongReference = (address: string, parent: string) =>
  `leakedRecord: the IPAddress: ${address} for Service default/${parent} has a wrong reference &v1.ParentReference{Group:"", Resource:"services", Namespace:"default", Name:"${parent}"}; cleaning up`;
const outside = (name: string, shown: string) =>
  `outOfRange: the ClusterIP ${shown} for Service default/${name} is not within any service CIDR; please recreate`;
const repairing = (name: string, shown: string, what: string) =>
  `notRecorded: the ClusterIP ${shown} for Service default/${name} ${what}; repairing`;

const ROWS: readonly Row[] = [
  // A Service with its IPAddress.
  {
    services: [service('good', '10.0.0.11')],
    addresses: { '10.0.0.11': { parent: 'good' } },
  },
  // A Service without an address.
  { services: [service('headless', 'None')] },
  // An address that does not parse.
  {
    services: [service('invalid', '10.0.0.300')],
    found: ['invalid: the ClusterIP 10.0.0.300 for Service default/invalid is not a valid IP; please recreate Service'],
  },
  // An address in no ServiceCIDR.
  {
    services: [service('outside', '10.9.0.1')],
    found: [outside('outside', '[IPv4]: 10.9.0.1')],
  },
  // An address in no ServiceCIDR with its IPAddress.
  {
    services: [service('recorded-outside', '10.9.0.2')],
    addresses: { '10.9.0.2': { parent: 'recorded-outside' } },
    found: [outside('recorded-outside', '[IPv4]: 10.9.0.2')],
  },
  // The network address and the broadcast address of IPv4, and the network address of IPv6.
  {
    services: [service('network', '10.0.0.0'), service('broadcast', '10.0.0.255'), service('network-6', 'fd00:10::')],
    found: [
      outside('network', '[IPv4]: 10.0.0.0'),
      outside('network-6', '[IPv6]: fd00:10::'),
      outside('broadcast', '[IPv4]: 10.0.0.255'),
    ],
  },
  // The last address of IPv6.
  {
    services: [service('last', 'fd00:10::ff')],
    found: [repairing('last', '[IPv6]: fd00:10::ff', 'is not allocated')],
  },
  // An address without an IPAddress, in each ServiceCIDR.
  {
    services: [service('missing', '10.0.0.12'), service('missing-6', 'fd00:10::12'), service('in-second', '10.5.0.12')],
    found: [
      repairing('missing', '[IPv4]: 10.0.0.12', 'is not allocated'),
      repairing('missing-6', '[IPv6]: fd00:10::12', 'is not allocated'),
      repairing('in-second', '[IPv4]: 10.5.0.12', 'is not allocated'),
    ],
  },
  // An address in a ServiceCIDR that is not ready.
  {
    services: [service('not-ready', '10.6.0.12')],
    found: [repairing('not-ready', '[IPv4]: 10.6.0.12', 'is not allocated')],
  },
  // An IPAddress of the address of a Service that references an object of another kind.
  {
    services: [service('other-resource', '10.0.0.13'), service('other-group', '10.0.0.14')],
    addresses: {
      '10.0.0.13': { parent: 'x', resource: 'gateways', labels: OTHER_MANAGER },
      '10.0.0.14': { parent: 'other-group', group: 'example.com', labels: OTHER_MANAGER },
    },
    found: [
      repairing('other-resource', '[IPv4]: 10.0.0.13', 'has a wrong reference'),
      repairing('other-group', '[IPv4]: 10.0.0.14', 'has a wrong reference'),
    ],
  },
  // An address of two Services.
  {
    services: [service('first', '10.5.0.16'), service('second', '10.5.0.16')],
    addresses: { '10.5.0.16': { parent: 'first' } },
    found: [
      'duplicate: the cluster IP [IPv4]:10.5.0.16 for service default/second was assigned to other services default/first; please recreate',
    ],
  },
  // An IPAddress that references another Service, which does not have the address. Upstream deletes it and creates another one,
  // with a second event; a pass replaces it, so that the address is never free.
  {
    services: [service('elsewhere', '10.0.0.17')],
    addresses: { '10.0.0.17': { parent: 'good' } },
    found: [wrongReference('10.0.0.17', 'good')],
  },
  // Wrong labels and missing labels.
  {
    services: [service('labels', '10.0.0.18', 'fd00:10::18'), service('no-labels', '10.0.0.19')],
    addresses: {
      '10.0.0.18': { parent: 'labels', labels: OTHER_MANAGER },
      'fd00:10::18': { parent: 'labels' },
      '10.0.0.19': { parent: 'no-labels', labels: {} },
    },
  },
  // An IPAddress of another manager.
  {
    addresses: { '10.0.0.20': { parent: 'x', resource: 'gateways', labels: OTHER_MANAGER } },
  },
  // An IPAddress of the API servers that references no Service.
  {
    addresses: { '10.0.0.21': { parent: 'x', resource: 'gateways' } },
    found: [
      'leakedRecord: IPAddress 10.0.0.21 appears to have been modified, not referencing a Service &ParentReference{Group:,Resource:gateways,Namespace:default,Name:x,}: cleaning up',
    ],
  },
  // An old and a new IPAddress of a Service that does not exist.
  {
    addresses: { '10.0.0.22': { parent: 'gone' }, '10.0.0.23': { parent: 'gone', created: IN_A_CENTURY } },
    found: ['leakedRecord: IPAddress 10.0.0.22 appears to have leaked: cleaning up'],
  },
  // An old and a new IPAddress of an ExternalName.
  {
    services: [externalName('external')],
    addresses: { '10.0.0.24': { parent: 'external' }, '10.0.0.25': { parent: 'external', created: IN_A_CENTURY } },
    found: [wrongReference('10.0.0.24', 'external')],
  },
  // An old and a new IPAddress of a Service with another address.
  {
    addresses: { '10.0.0.26': { parent: 'good' }, '10.0.0.27': { parent: 'good', created: IN_A_CENTURY } },
    found: [wrongReference('10.0.0.26', 'good')],
  },
];

const services = ROWS.flatMap((row) => row.services ?? []);

function serviceCidr(name: string, cidrs: readonly string[], status = 'True') {
  const metadata = { name, uid: `uid-of-${name}`, creationTimestamp: LONG_AGO };
  const ready = { type: 'Ready', status, reason: 'X', message: '', lastTransitionTime: LONG_AGO };
  const object = { apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR', metadata };
  return { ...object, spec: { cidrs }, status: { conditions: [ready] } };
}

const RANGES = ['10.0.0.0/24', 'fd00:10::/120'];
const DEFAULT_CIDR = '/registry/servicecidrs/kubernetes';

async function plant(etcd: Etcd): Promise<void> {
  const metadata = { name: 'default', uid: 'uid-of-default', creationTimestamp: LONG_AGO };
  await etcd.put('/registry/namespaces/default', { apiVersion: 'v1', kind: 'Namespace', metadata });
  await etcd.put('/registry/servicecidrs/second', serviceCidr('second', ['10.5.0.0/24']));
  await etcd.put('/registry/servicecidrs/not-ready', serviceCidr('not-ready', ['10.6.0.0/24'], 'False'));
  for (const [name, address] of ROWS.flatMap((row) => Object.entries(row.addresses ?? {}))) {
    await etcd.put(`/registry/ipaddresses/${name}`, storedAddress(name, address));
  }
  await etcd.putServices(services);
}

/** Returns the IPAddresses, except that of the Service that a stock API server creates. */
async function recorded({ request }: KubeApiserver) {
  const { body } = await request<{ items: WholeObject<V1IPAddress>[] }>('GET', IP_ADDRESSES);
  return body.items
    .filter(({ spec }) => spec.parentRef.name !== 'kubernetes')
    .map(({ metadata: { name, labels = {} }, spec }) => ({ name, labels, parent: spec.parentRef }));
}

/**
 * Returns the events as text, each only once. An event and its repetitions are equal here, because a repetition only increases
 * the count in its series.
 */
async function eventsBy(controller: string, { request }: KubeApiserver): Promise<string[]> {
  const { body } = await request<{ items: WholeObject<EventsV1Event>[] }>('GET', '/apis/events.k8s.io/v1/events');
  const lines = body.items
    .filter(({ reportingController }) => reportingController === controller)
    .map(({ metadata, regarding = {}, type, reason, action, note = '' }) => {
      const { apiVersion, kind, namespace = '', name, uid } = regarding;
      // Upstream prints an address that does not parse as `<nil>`.
      const text = note.replace('<nil>', '10.0.0.300');
      return [metadata.namespace, apiVersion, kind, namespace, name, uid, type, reason, action, text].join(' | ');
    });
  return [...new Set(lines)].toSorted();
}

const [etcd, theirEtcd] = [running(startEtcd), running(startEtcd)];
let upstream: KubeApiserver;
let ours: KubeApiserver;

beforeAll(async () => {
  await Promise.all([plant(etcd), plant(theirEtcd)]);
  await etcd.put(DEFAULT_CIDR, serviceCidr('kubernetes', RANGES));
  // The repair of upstream waits until the ServiceCIDR `kubernetes` exists. Until the API server accepts events, this ServiceCIDR
  // has another name, so that the repair does not begin.
  await theirEtcd.put(DEFAULT_CIDR, serviceCidr('later', RANGES));
  const serviceClusterIPRange = RANGES.join(',');
  const readyPath = '/readyz?exclude=poststarthook/start-service-ip-repair-controllers';
  [ours, upstream] = await Promise.all([
    startKubeApiserver({ etcd, serviceClusterIPRange, hooksOff: true }),
    startKubeApiserver({ etcd: theirEtcd, serviceClusterIPRange, readyPath }),
  ]);
  await theirEtcd.put(DEFAULT_CIDR, serviceCidr('kubernetes', RANGES));
});

const handlers = runningHandlers(() => ({
  kubeconfigFile: ours.kubeconfigFile,
  spec: { mode: 'observe', allocator: 'apiserver', apiServers: [{ address: '10.9.8.7' }] },
}));

test('a pass in mode observe reports every wrong IPAddress, and writes neither objects nor events', async () => {
  const before = await recorded(ours);
  await handlers.run('cluster-ip-repair');
  // A pass reports an IPAddress that it would delete only if a pass has seen it 65 s before.
  handlers.advance(65_000);
  const { findings, errors } = await handlers.run('cluster-ip-repair');
  expect(errors).toEqual([]);
  expect(findings.toSorted()).toEqual(ROWS.flatMap(({ found = [] }) => found).toSorted());
  expect(await recorded(ours)).toEqual(before);
  expect(await eventsBy('kube-bootstrap-controller/cluster-ip-repair', ours)).toEqual([]);
});

test('two passes with repair.ipAddresses result in the same IPAddresses and events as the repair of upstream', async () => {
  await handlers.register({ mode: 'enforce', repair: { ipAddresses: true } });
  expect(await handlers.run('cluster-ip-repair')).toMatchObject({ errors: [] });
  expect(await handlers.run('cluster-ip-repair')).toMatchObject({ errors: [] });
  // Upstream checks a Service again when it changes, or after three minutes.
  await eventually(async () => expect(await upstream.request('GET', '/readyz')).toMatchObject({ status: 200 }));
  await theirEtcd.putServices(services);

  const objects = await recorded(ours);
  const events = await eventsBy('kube-bootstrap-controller/cluster-ip-repair', ours);
  await eventually(async () => {
    expect(await recorded(upstream)).toEqual(objects);
    const theirs = await eventsBy('ipallocator-repair-controller', upstream);
    expect(theirs.filter((event) => !event.includes('10.0.0.17 is not allocated; repairing'))).toEqual(events);
  });
});

test('a pass after the repair writes nothing and reports only the faults that it cannot repair', async () => {
  const { changes, findings, errors } = await handlers.run('cluster-ip-repair');
  expect({ changes, errors }).toEqual({ changes: [], errors: [] });
  const staying = ROWS.flatMap(({ found = [] }) => found).filter((text) =>
    /^(invalid|outOfRange|duplicate)/.test(text),
  );
  expect(findings.toSorted()).toEqual(staying.toSorted());
});
