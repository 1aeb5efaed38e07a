import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { findBinaries } from '../support/binaries.ts';
import { type Etcd, type KubeApiserver, startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/server-process.ts';

jest.setTimeout(180_000);

interface List {
  readonly items: readonly KubernetesObject[];
}

interface Endpoints {
  readonly subsets: readonly {
    readonly addresses: readonly { readonly ip: string }[];
    readonly ports: readonly { readonly port: number }[];
  }[];
}

const defaultNamespace = '/api/v1/namespaces/default';
const kubernetesEndpoints = `${defaultNamespace}/endpoints/kubernetes`;
const endpointSlices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';

async function names(apiserver: KubeApiserver, path: string): Promise<string[]> {
  const { body } = await apiserver.request<List>('GET', path);
  return body.items.map(({ metadata }) => metadata.name);
}

describe('a stock API server with the reconciler "none"', () => {
  let etcd: Etcd;
  let apiserver: KubeApiserver;

  beforeAll(async () => {
    etcd = await startEtcd();
    apiserver = await startKubeApiserver({ etcd });
  });
  afterAll(() => etcd?.stop());

  test('is Kubernetes 1.36 and ready', async () => {
    expect(await apiserver.request('GET', '/version')).toMatchObject({
      body: { gitVersion: expect.stringMatching(/^v1\.36\./) },
    });
    expect(await apiserver.request('GET', '/readyz')).toEqual({ status: 200, body: 'ok' });
  });

  test('makes the Service kubernetes and leaves it without endpoints', async () => {
    await eventually(async () => {
      expect(await apiserver.request('GET', `${defaultNamespace}/services/kubernetes`)).toMatchObject({
        status: 200,
        body: { spec: { clusterIP: '10.0.0.1' } },
      });
    });
    expect(await apiserver.request('GET', kubernetesEndpoints)).toMatchObject({ status: 404 });
    expect(await names(apiserver, endpointSlices)).toEqual([]);
  });

  test('lists a Service that went straight into etcd although the API would refuse it', async () => {
    const service = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: 'default', name: 'out-of-range', uid: 'a', creationTimestamp: '2026-01-01T00:00:00Z' },
      spec: { type: 'ClusterIP', clusterIP: '192.168.77.7', clusterIPs: ['192.168.77.7'], ports: [{ port: 80 }] },
    };
    expect(await apiserver.request('POST', `${defaultNamespace}/services`, service)).toMatchObject({ status: 422 });

    await etcd.putServices([service]);

    expect(await names(apiserver, '/api/v1/services')).toContain('out-of-range');
  });

  test('lists every one of a thousand Services as soon as they are in etcd', async () => {
    const services = Array.from({ length: 1000 }, (_, index) => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: 'many', name: `s${index}`, uid: `s${index}`, creationTimestamp: '2026-01-01T00:00:00Z' },
      spec: { type: 'ClusterIP', clusterIP: 'None', clusterIPs: ['None'] },
    }));

    await etcd.putServices(services);

    expect(await names(apiserver, '/api/v1/namespaces/many/services')).toHaveLength(1000);
  });

  test('creates, patches and deletes through requests with a body', async () => {
    const path = `${defaultNamespace}/configmaps`;
    expect(await apiserver.request('POST', path, { metadata: { name: 'a' }, data: { x: '1' } })).toMatchObject({
      status: 201,
    });
    expect(await apiserver.request('PATCH', `${path}/a`, { data: { y: '2' } })).toMatchObject({
      status: 200,
      body: { data: { x: '1', y: '2' } },
    });
    expect(await apiserver.request('DELETE', `${path}/a`)).toMatchObject({ status: 200 });
  });
});

describe('two API servers with the reconciler "lease" on one etcd', () => {
  let etcd: Etcd;
  let port: number;
  let first: KubeApiserver;
  let second: KubeApiserver;

  beforeAll(async () => {
    etcd = await startEtcd();
    port = await freePort('127.0.0.1', '127.0.0.2');
    const common = { etcd, port, endpointReconcilerType: 'lease' } as const;
    [first, second] = await Promise.all([
      startKubeApiserver({ ...common, bindAddress: '127.0.0.1', advertiseAddress: '10.9.8.1' }),
      startKubeApiserver({ ...common, bindAddress: '127.0.0.2', advertiseAddress: '10.9.8.2' }),
    ]);
  });
  afterAll(() => etcd?.stop());

  test('publish both their addresses under one port', async () => {
    await eventually(async () => {
      const { body } = await first.request<Endpoints>('GET', kubernetesEndpoints);
      expect(body.subsets).toEqual([
        {
          addresses: [{ ip: '10.9.8.1' }, { ip: '10.9.8.2' }],
          ports: [expect.objectContaining({ name: 'https', port })],
        },
      ]);
    });
  });

  test('can be killed one by one and started again with the same certificate and credential', async () => {
    await second.kill();
    await expect(second.request('GET', '/readyz')).rejects.toThrow();
    expect(await first.request('GET', '/readyz')).toMatchObject({ status: 200 });

    await second.restart();

    expect(await second.request('GET', '/readyz')).toMatchObject({ status: 200 });
  });
});

describe('an API server with its hooks off', () => {
  let etcd: Etcd;
  let apiserver: KubeApiserver;

  beforeAll(async () => {
    etcd = await startEtcd();
    apiserver = await startKubeApiserver({ etcd, hooksOff: true });
  });
  afterAll(() => etcd?.stop());

  test('is ready without the namespace default, a ServiceCIDR or a Service', async () => {
    expect(await apiserver.request('GET', '/readyz')).toMatchObject({ status: 200 });
    expect(await apiserver.request('GET', defaultNamespace)).toMatchObject({ status: 404 });
    expect(await names(apiserver, '/api/v1/namespaces')).not.toContain('kube-node-lease');
    expect(await names(apiserver, '/apis/networking.k8s.io/v1/servicecidrs')).toEqual([]);
    expect(await names(apiserver, '/api/v1/services')).toEqual([]);
  });
});

describe('etcd', () => {
  let etcd: Etcd;

  beforeAll(async () => {
    etcd = await startEtcd();
  });
  afterAll(() => etcd?.stop());

  test('stores, returns and deletes values under their keys', async () => {
    await etcd.put('/a', { b: 1 });

    expect((await etcd.get('/a'))?.toString()).toBe('{"b":1}');
    expect(await etcd.delete('/a')).toBe(true);
    expect(await etcd.delete('/a')).toBe(false);
    expect(await etcd.get('/a')).toBeUndefined();
  });

  test('an API server that cannot start fails with the end of its log', async () => {
    await expect(startKubeApiserver({ etcd, extraArgs: ['--no-such-flag'] })).rejects.toThrow(
      /ended with code 1\. .*unknown flag: --no-such-flag/s,
    );
  });
});

test('a server does not outlive the process that started it, even when that is killed', async () => {
  const harness = join(import.meta.dirname, '../support/control-plane.ts');
  const script = `import { startEtcd } from ${JSON.stringify(harness)};
    console.log((await startEtcd()).url);
    setInterval(() => {}, 1000);`;
  const starter = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(starter.stdout, 'data');
  const health = `${String(line).trim()}/health`;
  expect((await fetch(health)).status).toBe(200);

  starter.kill('SIGKILL');

  await eventually(() => expect(fetch(health)).rejects.toThrow());
});

test('binaries that are not there are named, with what to do', () => {
  const env = { ...process.env, KUBEBUILDER_ASSETS: '/nowhere' };
  expect(() => findBinaries(env)).toThrow(/\/nowhere\/etcd and \/nowhere\/kube-apiserver .* set KUBEBUILDER_ASSETS/);
});
