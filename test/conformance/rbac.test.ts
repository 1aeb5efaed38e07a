import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { EventsV1Event } from '@kubernetes/client-node';
import { checkRights } from '../../lib/doctor/check-access.ts';
import { credentialEnds } from '../../lib/kubernetes/credentials.ts';
import { loadKubeconfigFile } from '../../lib/kubernetes/kubeconfig.ts';
import { PERMISSION_GROUPS, type Permission, permissionText, selfReview } from '../../lib/kubernetes/permissions.ts';
import { ApiServerConnections } from '../../lib/kubernetes/transport.ts';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { storedService } from '../support/etcd-client.ts';
import { eventually } from '../support/eventually.ts';
import { runAllLoops } from '../support/handlers.ts';
import { published, SERVICE_PATH, SLICE_PATH } from '../support/kubernetes-service-objects.ts';
import { type RawRequests, rawRequests } from '../support/raw-requests.ts';
import { applyShippedRbac, grant } from '../support/shipped-rbac.ts';
import { IPV4_LABELS } from '../support/stock-objects.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  IP_ADDRESSES,
  runningControlPlane,
  runningHandlers,
  SERVICE_CIDRS,
  SERVICES,
} from './running-control-plane.ts';

const USER = 'system:serviceaccount:kube-system:kube-bootstrap-controller';
const ADDRESS = '10.9.8.7';
const NAMESPACES = '/api/v1/namespaces';
const IN_DEFAULT = `${NAMESPACES}/default`;
const SLICES = SLICE_PATH.replace(/\/kubernetes$/, '');
const EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events';
const SYSTEM_EVENTS = '/apis/events.k8s.io/v1/namespaces/kube-system/events';
const ALIEN = '203.0.113.66';
const SLICE = { addressType: 'IPv4', endpoints: [{ addresses: [ALIEN] }], ports: [] };
const EVENT = { eventTime: '2026-01-01T00:00:00.000000Z', action: 'a', reason: 'r', type: 'Normal', note: 'n' };
const KUBELET = { reportingController: 'kubelet', reportingInstance: 'i' };
const FOREIGN_EVENT = { ...EVENT, ...KUBELET, regarding: { namespace: 'default' } };
const PORTS = [{ port: 443 }];
const SUBSETS = [{ addresses: [{ ip: ALIEN }], ports: PORTS }];
const OTHER = { metadata: { name: 'other' } };
const PRIVILEGED = { 'pod-security.kubernetes.io/enforce': 'privileged' };
const NODE_SELECTOR = { 'scheduler.alpha.kubernetes.io/node-selector': 'x=y' };

const folder = temporaryFolder();
const policy = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'Metadata', users: [USER] }] };
writeFileSync(join(folder, 'policy.json'), JSON.stringify(policy));
const { etcd, apiserver } = runningControlPlane({
  hooksOff: true,
  extraArgs: [
    `--audit-policy-file=${join(folder, 'policy.json')}`,
    `--audit-log-path=${join(folder, 'audit')}`,
    '--audit-log-mode=blocking',
  ],
});

let kubeconfigFile: string;
/** Sends requests with the token of the functions, as a thief of the kubeconfig could. */
let asFunctions: RawRequests;

/* The tests run in order: each starts with the state that the previous test left. Only the loops create objects. */
const handlers = runningHandlers(async () => {
  await apiserver.request('POST', '/api/v1/namespaces', { metadata: { name: 'default' } });
  const shipped = await applyShippedRbac(apiserver);
  ({ kubeconfigFile } = shipped);
  asFunctions = rawRequests({ url: apiserver.url, caFile: apiserver.caFile, token: shipped.token });
  return {
    kubeconfigFile,
    spec: {
      apiServers: [{ address: ADDRESS, probe: { url: `${apiserver.url}/readyz`, authenticate: true } }],
      service: { securePort: apiserver.port, reconcile: true },
    },
  };
});
afterAll(() => asFunctions?.close());

describe('a token of the service account in deploy/rbac.yaml', () => {
  test('the passes of all four loops succeed in an empty cluster', async () => {
    const passes = await runAllLoops(handlers);

    expect(passes.flatMap(({ errors }) => errors)).toEqual([]);
    expect(passes.map(({ summary }) => summary)).toEqual(
      LOOPS.map(() => expect.objectContaining({ passes: 1, failed: 0 })),
    );
  });

  test('the loops repair changes by other writers, and replace a slice of the wrong family', async () => {
    const expectRepaired = async () => {
      expect(await handlers.run('kubernetes-service')).toMatchObject({ errors: [] });
      expect(await published(apiserver)).toEqual({ endpoints: [ADDRESS], slice: [ADDRESS] });
    };
    const ports = [{ name: 'https', port: 8443, protocol: 'TCP', targetPort: 8443 }];
    await apiserver.request('PATCH', SERVICE_PATH, { spec: { ports } });
    await apiserver.request('PATCH', '/api/v1/namespaces/default/endpoints/kubernetes', { subsets: [] });
    await apiserver.request('PATCH', SLICE_PATH, { endpoints: [] });
    await expectRepaired();

    // Advances the clock, so that the pass does not report a contest after the previous correction.
    handlers.advance(60 * 60_000);
    await apiserver.request('DELETE', SLICE_PATH);
    await apiserver.request('POST', SLICES, {
      metadata: { name: 'kubernetes', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
      addressType: 'IPv6',
      endpoints: [{ addresses: ['2001:db8::1'] }],
    });
    await expectRepaired();
  });

  test('the loops write an event for each finding, and extend the series of this event if the finding is repeated', async () => {
    const ports = [{ port: 80, nodePort: 30_100 }];
    const spec = { type: 'NodePort', clusterIP: '10.0.0.77', clusterIPs: ['10.0.0.77'], ports };
    await etcd.putServices([storedService('kube-system', 'one', spec), storedService('kube-system', 'two', spec)]);

    for (const _ of [1, 2]) {
      for (const loop of ['cluster-ip-repair', 'node-port-repair'] as const) {
        expect((await handlers.run(loop)).errors).toEqual([]);
      }
    }

    const { body } = await apiserver.request<{ items: EventsV1Event[] }>('GET', SYSTEM_EVENTS);
    const counts = body.items.map(({ reason, series }) => `${reason} ${series?.count}`);
    expect(counts.toSorted()).toEqual(['ClusterIPAlreadyAllocated 2', 'PortAlreadyAllocated 2']);
  });

  test('the doctor reports no missing and no excessive right', async () => {
    const access = await loadKubeconfigFile(kubeconfigFile);
    const connections = new ApiServerConnections();
    const call = { transport: connections.transport(access), deadline: AbortSignal.timeout(30_000) };
    const review = selfReview({ ...call, server: access.server, userAgent: 'doctor' });
    const lines = await checkRights(review, aClusterSpec({ mode: 'enforce' }), 'https://10.20.0.1:6443');
    const [token] = await credentialEnds(access);
    await expect(review.user()).resolves.toMatch(/^system:serviceaccount:/);
    await connections.close();

    expect(lines.filter(({ level }) => level !== 'ok')).toEqual([]);
    expect(token).toMatchObject({ what: 'token', endsMs: expect.any(Number), beganMs: expect.any(Number) });
  });

  test('the loops use each granted verb, and no request is refused', () => {
    const audited = readFileSync(join(folder, 'audit'), 'utf8')
      .trim()
      .split('\n')
      .map((line): AuditEvent => JSON.parse(line))
      .filter(({ stage, userAgent }) => stage === 'ResponseComplete' && userAgent?.startsWith('kube-bootstrap'));
    const refused = audited.filter(({ responseStatus }) => responseStatus.code === 403);
    const needed = PERMISSION_GROUPS.flatMap(({ permissions }) => permissions);
    const unused = needed.filter((permission) => !audited.some((event) => isUseOf(event, permission)));

    expect(refused.map(({ verb, requestURI }) => `${verb} ${requestURI}`)).toEqual([]);
    expect(unused.map(permissionText)).toEqual([]);
  });

  const inSystem = '/api/v1/namespaces/kube-system';
  test.each([
    ['write the endpoints of another namespace', 'PUT', `${inSystem}/endpoints/one`],
    ['write other endpoints of default', 'PUT', `${IN_DEFAULT}/endpoints/other`],
    ['write other Services of default', 'PUT', `${IN_DEFAULT}/services/other`],
    ['delete the kubernetes Service', 'DELETE', SERVICE_PATH],
    ['patch the kubernetes Service', 'PATCH', SERVICE_PATH],
    ['delete a namespace', 'DELETE', '/api/v1/namespaces/kube-public'],
    ['write the ServiceCIDR', 'PUT', '/apis/networking.k8s.io/v1/servicecidrs/kubernetes'],
    ['read secrets', 'GET', '/api/v1/secrets'],
    ['create another token for itself', 'POST', `${inSystem}/serviceaccounts/kube-bootstrap-controller/token`],
    ['grant itself rights', 'POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings'],
  ] as const)('the role does not allow the token of the functions to %s', async (_what, method, path) => {
    const reply = await asFunctions.request(method, path, method === 'GET' ? undefined : { metadata: { name: 'x' } });
    expect(reply.status).toBe(403);
  });
});

interface AuditEvent {
  readonly stage: string;
  readonly verb: string;
  readonly userAgent?: string;
  readonly requestURI: string;
  readonly responseStatus: { readonly code: number };
  readonly objectRef?: Readonly<Partial<Record<'resource' | 'apiGroup' | 'namespace' | 'name', string>>>;
}

function isUseOf({ verb, objectRef }: AuditEvent, permission: Permission): boolean {
  return (
    objectRef !== undefined &&
    verb === permission.verb &&
    objectRef.resource === permission.resource &&
    (objectRef.apiGroup ?? '') === permission.group &&
    (permission.namespace === undefined || objectRef.namespace === permission.namespace) &&
    (permission.name === undefined || objectRef.name === permission.name)
  );
}

function named(name: string, service: string) {
  return { name, labels: { 'kubernetes.io/service-name': service } };
}

const GENERATED = { ...named('', 'kubernetes'), generateName: 'kubernetes-' };
const NODE_LEASES = { name: 'kube-node-lease' };
const PUBLIC_CIDR = { metadata: { name: 'kubernetes' }, spec: { cidrs: ['203.0.113.0/24'] } };
const SERIES = { count: 2, lastObservedTime: '2026-01-01T00:00:00.000000Z' };

/**
 * Requests that the roles allow, because RBAC cannot restrict `create` by name and does not read objects. The body of a PUT is
 * merged into the existing object.
 */
const ATTACKS = [
  ['create another Service', 'POST', SERVICES, { ...OTHER, spec: { clusterIP: 'None' } }],
  ['redirect another Service by Endpoints', 'POST', `${IN_DEFAULT}/endpoints`, { ...OTHER, subsets: SUBSETS }],
  ['redirect another Service by a slice', 'POST', SLICES, { metadata: named('other-1', 'other'), ...SLICE }],
  ['add a slice to the kubernetes Service', 'POST', SLICES, { metadata: GENERATED, ...SLICE }],
  ['assign its slice to another Service', 'PUT', SLICE_PATH, { metadata: named('kubernetes', 'other') }],
  ['take an external IP', 'PUT', SERVICE_PATH, { spec: { externalIPs: [ALIEN] } }],
  ['select pods', 'PUT', SERVICE_PATH, { spec: { selector: { app: 'evil' } } }],
  ['make its Service a load balancer', 'PUT', SERVICE_PATH, { spec: { type: 'LoadBalancer' } }],
  ['create another namespace', 'POST', NAMESPACES, OTHER],
  ['create a privileged system namespace', 'POST', NAMESPACES, { metadata: { ...NODE_LEASES, labels: PRIVILEGED } }],
  [
    'create a system namespace with annotations',
    'POST',
    NAMESPACES,
    { metadata: { ...NODE_LEASES, annotations: NODE_SELECTOR } },
  ],
  ['create another ServiceCIDR', 'POST', SERVICE_CIDRS, { ...OTHER, spec: { cidrs: ['10.1.0.0/24'] } }],
  ['create the default ServiceCIDR with public addresses', 'POST', SERVICE_CIDRS, PUBLIC_CIDR],
  ["report an event in another controller's name", 'POST', EVENTS, { metadata: { name: 'e' }, ...FOREIGN_EVENT }],
  ["continue another controller's event", 'PATCH', `${EVENTS}/foreign`, { series: SERIES }],
] as const;

type Attack = readonly [what: string, method: 'POST' | 'PUT' | 'PATCH', path: string, body: object];

async function statusOf([, method, path, body]: Attack): Promise<number> {
  const dryRun = `${path}?dryRun=All`;
  if (method !== 'PUT') return (await asFunctions.request(method, dryRun, body)).status;
  const { body: current } = await apiserver.request<{ metadata: object; spec?: object }>('GET', path);
  const { metadata = {}, spec = {} } = body as { metadata?: object; spec?: object };
  const specField = current.spec && { spec: { ...current.spec, ...spec } };
  const changed = { ...current, metadata: { ...current.metadata, ...metadata }, ...specField };
  return (await asFunctions.request('PUT', dryRun, changed)).status;
}

describe('a token of the service account with the rights that repair.ipAddresses needs', () => {
  const path = `${SERVICE_CIDRS}/kubernetes`;
  const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x' };

  beforeAll(async () => {
    const rules = [
      { apiGroups: ['networking.k8s.io'], resources: ['servicecidrs'], verbs: ['update'] },
      { apiGroups: ['networking.k8s.io'], resources: ['ipaddresses'], verbs: ['patch'] },
    ];
    await grant(apiserver, { name: 'kube-bootstrap-controller', namespace: 'kube-system' }, rules);
    await apiserver.request('PATCH', path, { metadata: { finalizers: ['example.com/kept'] } });
  });

  test.each([
    ['removes its finalizers', { metadata: { finalizers: [] } }],
    ['adds an owner, so that the garbage collector deletes the object', { metadata: { ownerReferences: [owner] } }],
    ['adds public addresses', { spec: { cidrs: ['10.0.0.0/24', '2001:db8::/112'] } }],
  ])('the admission policy rejects an update of the ServiceCIDR kubernetes that %s', async (what, body) => {
    expect(await statusOf([what, 'PUT', path, body])).toBe(403);
  });

  test('the admission policy allows a token with the rights for repair.ipAddresses to add a second range', async () => {
    const spec = { cidrs: ['10.0.0.0/24', 'fd00::/112'] };
    expect(await statusOf(['add a range', 'PUT', path, { spec }])).toBe(200);
  });

  test('the admission policy allows a token with the rights for repair.ipAddresses to correct the labels of an IPAddress of a Service, but not the labels of an IPAddress with another parent', async () => {
    const labels = { ...IPV4_LABELS, 'ipaddress.kubernetes.io/managed-by': 'example.com' };
    const statuses = ['services', 'gateways'].map(async (resource, index) => {
      const name = `10.0.0.${100 + index}`;
      const spec = { parentRef: { resource, namespace: 'default', name: 'x' } };
      await apiserver.send('POST', IP_ADDRESSES, { metadata: { name, labels }, spec });
      const body = { metadata: { labels: IPV4_LABELS } };
      return statusOf(['correct the labels', 'PATCH', `${IP_ADDRESSES}/${name}`, body]);
    });
    expect(await Promise.all(statuses)).toEqual([200, 403]);
  });
});

/* The tests run in order: the last one deletes the binding of the policy. */
describe('the admission policy of deploy/rbac.yaml', () => {
  beforeAll(async () => {
    const event = { metadata: { name: 'foreign' }, ...FOREIGN_EVENT };
    expect(await apiserver.request('POST', EVENTS, event)).toMatchObject({ status: 201 });
    // Some attacks create objects that the loops have created.
    for (const key of ['servicecidrs/kubernetes', 'namespaces/kube-node-lease']) await etcd.delete(`/registry/${key}`);
  });

  test.each(ATTACKS)('the admission policy does not allow the token of the functions to %s', async (...attack) => {
    expect(await statusOf(attack)).toBe(403);
  });

  test('without the binding of the admission policy, the roles allow all requests that the policy would refuse', async () => {
    const binding = 'validatingadmissionpolicybindings/kube-bootstrap-controller';
    await apiserver.request('DELETE', `/apis/admissionregistration.k8s.io/v1/${binding}`);
    for (const attack of ATTACKS) {
      await eventually(async () =>
        expect([attack[0], await statusOf(attack)]).toEqual([attack[0], attack[1] === 'POST' ? 201 : 200]),
      );
    }
  });
});
