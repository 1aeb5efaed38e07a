import { afterAll, expect, test } from '@jest/globals';
import { openServiceCidrs } from '../../cli/allocate/open-service-cidrs.ts';
import { allocation } from '../../lib/allocate/allocation.ts';
import type { Answer } from '../../lib/allocate/answer.ts';
import type { AllocateRequest } from '../../lib/allocate/request.ts';
import { loadKubeconfigFile } from '../../lib/kubernetes/kubeconfig.ts';
import { ClusterConnections } from '../../lib/runtime/cluster-connections.ts';
import { startDeadline } from '../../lib/runtime/deadline.ts';
import { eventually } from '../support/eventually.ts';
import { CLUSTER } from '../support/handlers.ts';
import { recordingTelemetry } from '../support/recording-telemetry.ts';
import { applyShippedRbac, grant } from '../support/shipped-rbac.ts';
import { IP_ADDRESSES, runningControlPlane, runningHandlers, SERVICES } from './running-control-plane.ts';

/** A stock API server, which runs its own repair of IPAddresses. */
const { apiserver } = runningControlPlane();
let kubeconfigFile: string;
const loadKubeconfig = () => loadKubeconfigFile(kubeconfigFile);
const connections = new ClusterConnections({ nowMs: Date.now, loadKubeconfig });

const ACCOUNT = { name: 'kube-bootstrap-controller', namespace: 'kube-system' };
const MINUTE_MS = 60_000;
const NEXT = { range: 'serviceips', next: true } as const;

const handlers = runningHandlers(async () => {
  ({ kubeconfigFile } = await applyShippedRbac(apiserver));
  const holds = { apiGroups: ['networking.k8s.io'], resources: ['ipaddresses'], verbs: ['create', 'delete'] };
  await grant(apiserver, ACCOUNT, [holds]);
  return { kubeconfigFile, spec: { allocator: 'apiserver', apiServers: [{ address: '10.9.8.7' }] } };
});
afterAll(() => connections.close());

function ask(request: Omit<AllocateRequest, 'cluster'>): Promise<Answer> {
  const handler = allocation({
    openHeld: async (spec, range, { signal, ...options }) => {
      const { kubernetes } = await connections.connect(spec, { loop: 'cluster-ip-repair', signal, warn: () => {} });
      return openServiceCidrs(kubernetes, spec, range, options);
    },
  });
  const table = () => handlers.table;
  const environment = { nowMs: Date.now, startDeadline, telemetry: recordingTelemetry, table };
  return handler({ cluster: CLUSTER, ...request }, { environment, getRemainingTimeInMillis: () => 60_000 });
}

function createService(name: string, clusterIP?: string) {
  const spec = { ports: [{ port: 80 }], ...(clusterIP !== undefined && { clusterIP }) };
  const service = { metadata: { name }, spec };
  return apiserver.request<{ message?: string; spec?: { clusterIP: string } }>('POST', SERVICES, service);
}

async function heldUid(address: string): Promise<string | undefined> {
  const { body } = await apiserver.request<{ metadata?: { uid?: string } }>('GET', `${IP_ADDRESSES}/${address}`);
  return body.metadata?.uid;
}

test('an API server refuses a held address to a Service, keeps the hold, and allocates the address after its release', async () => {
  const item = { range: 'serviceips', value: '10.0.0.9' } as const;
  expect(await ask({ requestId: 'r1', operation: 'allocate', items: [item] })).toMatchObject({ outcome: 'done' });
  const uid = await heldUid('10.0.0.9');
  const message = expect.stringContaining('provided IP is already allocated');
  expect(await createService('early', '10.0.0.9')).toMatchObject({ status: 422, body: { message } });
  const { findings, errors } = await handlers.run('cluster-ip-repair');
  expect({ findings, errors }).toEqual({ findings: [], errors: [] });
  expect(await heldUid('10.0.0.9')).toBe(uid);

  const released = await ask({ requestId: 'r2', operation: 'release', items: [item] });
  expect(released).toMatchObject({ outcome: 'done', items: [{ outcome: 'released' }] });
  await eventually(async () => expect(await createService('late', '10.0.0.9')).toMatchObject({ status: 201 }));
  const again = await ask({ requestId: 'r3', operation: 'release', items: [item] });
  expect(again).toMatchObject({ error: { code: 'NotHeld' } });
});

test('a pass releases only the expired hold', async () => {
  const inAMinute = new Date(Date.now() + MINUTE_MS).toISOString();
  const askHeld = async (requestId: string, owner: string, until: string) => {
    const { items } = await ask({ requestId, operation: 'allocate', items: [NEXT], hold: { owner, until } });
    return String(items[0]?.value);
  };
  const ending = await askHeld('e1', 'a', inAMinute);
  const staying = await askHeld('e2', 'b', 'forever');
  expect((await handlers.run('cluster-ip-repair')).changes).not.toContainEqual(expect.stringContaining('released'));
  handlers.advance(2 * MINUTE_MS);
  const { changes, errors } = await handlers.run('cluster-ip-repair');
  expect(errors).toEqual([]);
  expect(changes).toContain(`released ${ending}, whose hold of a expired`);
  expect(await heldUid(ending)).toBeUndefined();
  expect(await heldUid(staying)).toBeDefined();
});

test('two allocators and the API server never allocate the same address', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `s${index}`);
  const [first, second, ...services] = await Promise.all([
    ask({ requestId: 'c1', operation: 'allocate', items: [{ ...NEXT, count: 60 }] }),
    ask({ requestId: 'c2', operation: 'allocate', items: [{ ...NEXT, count: 60 }] }),
    ...names.map((name) => createService(name)),
  ]);
  const held = [...first.items, ...second.items].map(({ value }) => String(value));
  const allocated = services.map(({ body }) => body.spec?.clusterIP ?? 'none');
  expect([first.outcome, second.outcome]).toEqual(['done', 'done']);
  expect(new Set([...held, ...allocated]).size).toBe(140);
});
