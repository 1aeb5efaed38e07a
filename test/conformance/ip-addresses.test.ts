import { beforeAll, expect, test } from '@jest/globals';
import type { EventsV1Event, V1IPAddress } from '@kubernetes/client-node';
import type { WholeObject } from '../../lib/cluster/kubernetes-objects.ts';
import { type Etcd, type KubeApiserver, startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { type StoredService, storedIPAddress, storedService } from '../support/etcd-client.ts';
import { eventually } from '../support/eventually.ts';
import { running } from '../support/running.ts';
import { IPV4_LABELS } from '../support/stock-objects.ts';
import { IP_ADDRESSES, runningHandlers } from './running-control-plane.ts';

/*
 * Two control planes get the same broken objects. The repair of upstream corrects one, and a pass corrects the other, in which no
 * repair of the API server runs. Each Service has at most one fault of each kind, because upstream repeats the first event of a
 * kind for all faults of that kind. Only the golden cases test "unknown error", because it needs a failing cache.
 */

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

interface StoredAddress extends Readonly<Partial<Record<'created' | 'group' | 'resource', string>>> {
  readonly parent: string;
  readonly labels?: object;
}

const OTHER_MANAGER = { ...IPV4_LABELS, 'ipaddress.kubernetes.io/managed-by': 'another' };

const SERVICES: readonly StoredService[] = [
  service('good', '10.0.0.11'),
  service('headless', 'None'),
  service('invalid', '10.0.0.300'),
  // Addresses in no ServiceCIDR, one of them with an IPAddress, and addresses of ServiceCIDRs that cannot be allocated.
  service('outside', '10.9.0.1'),
  service('recorded-outside', '10.9.0.2'),
  service('network', '10.0.0.0'),
  service('broadcast', '10.0.0.255'),
  service('network-6', 'fd00:10::'),
  service('last', 'fd00:10::ff'),
  // Addresses without an IPAddress, in each ServiceCIDR and in one that is not ready.
  service('missing', '10.0.0.12'),
  service('missing-6', 'fd00:10::12'),
  service('in-second', '10.5.0.12'),
  service('not-ready', '10.6.0.12'),
  // The IPAddress references an object of another kind.
  service('other-resource', '10.0.0.13'),
  service('other-group', '10.0.0.14'),
  // Two Services with one address.
  service('first', '10.5.0.16'),
  service('second', '10.5.0.16'),
  // The IPAddress references another Service, which does not have the address. Upstream deletes it and creates another one,
  // with a second event; a pass replaces it, so that the address is never free.
  service('elsewhere', '10.0.0.17'),
  service('labels', '10.0.0.18', 'fd00:10::18'),
  service('no-labels', '10.0.0.19'),
  externalName('external'),
];

const ADDRESSES: Readonly<Record<string, StoredAddress>> = {
  '10.0.0.11': { parent: 'good' },
  '10.9.0.2': { parent: 'recorded-outside' },
  '10.0.0.13': { parent: 'x', resource: 'gateways', labels: OTHER_MANAGER },
  '10.0.0.14': { parent: 'other-group', group: 'example.com', labels: OTHER_MANAGER },
  '10.5.0.16': { parent: 'first' },
  '10.0.0.17': { parent: 'good' },
  '10.0.0.18': { parent: 'labels', labels: OTHER_MANAGER },
  'fd00:10::18': { parent: 'labels' },
  '10.0.0.19': { parent: 'no-labels', labels: {} },
  // IPAddresses that reference no Service, of another manager and of the API servers.
  '10.0.0.20': { parent: 'x', resource: 'gateways', labels: OTHER_MANAGER },
  '10.0.0.21': { parent: 'x', resource: 'gateways' },
  // An old and a new IPAddress of a missing Service, of an ExternalName, and of a Service with another address.
  '10.0.0.22': { parent: 'gone' },
  '10.0.0.23': { parent: 'gone', created: IN_A_CENTURY },
  '10.0.0.24': { parent: 'external' },
  '10.0.0.25': { parent: 'external', created: IN_A_CENTURY },
  '10.0.0.26': { parent: 'good' },
  '10.0.0.27': { parent: 'good', created: IN_A_CENTURY },
};

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
  for (const [address, { parent, labels = IPV4_LABELS, created = LONG_AGO, ...others }] of Object.entries(ADDRESSES)) {
    const parentRef = { namespace: 'default', name: parent, ...others };
    const stored = storedIPAddress(address, parentRef, { labels, creationTimestamp: created });
    await etcd.put(`/registry/ipaddresses/${address}`, stored);
  }
  await etcd.putServices(SERVICES);
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
  spec: { allocator: 'apiserver', repair: { ipAddresses: true }, apiServers: [{ address: '10.9.8.7' }] },
}));

test('passes with repair.ipAddresses result in the same IPAddresses and events as the repair of upstream, and a later pass writes nothing', async () => {
  expect(await handlers.run('cluster-ip-repair')).toMatchObject({ errors: [] });
  // A pass deletes an IPAddress only if a pass has seen its fault 65 s before.
  handlers.advance(65_000);
  for (const _ of [1, 2]) expect(await handlers.run('cluster-ip-repair')).toMatchObject({ errors: [] });
  expect(await handlers.run('cluster-ip-repair')).toMatchObject({ changes: [], errors: [] });
  // Upstream checks a Service again when it changes, or after three minutes.
  await eventually(async () => expect(await upstream.request('GET', '/readyz')).toMatchObject({ status: 200 }));
  await theirEtcd.putServices(SERVICES);

  const objects = await recorded(ours);
  const events = await eventsBy('kube-bootstrap-controller/cluster-ip-repair', ours);
  await eventually(async () => {
    expect(await recorded(upstream)).toEqual(objects);
    const theirs = await eventsBy('ipallocator-repair-controller', upstream);
    expect(theirs.filter((event) => !event.includes('10.0.0.17 is not allocated; repairing'))).toEqual(events);
  });
});
