import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ClusterConnections } from '../../lib/dispatch/cluster-connections.ts';
import { ClusterError } from '../../lib/kubernetes/errors.ts';
import type { ApiServerAccess } from '../../lib/kubernetes/kubeconfig.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';

const MINUTE = 60_000;

/** Refuses every credential. */
let server: Server;
let url = '';
beforeAll(async () => {
  server = createServer((_, response) => {
    response.writeHead(401, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ kind: 'Status', apiVersion: 'v1', code: 401, reason: 'Unauthorized' }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await new Promise((resolve) => server.close(resolve));
});

function access(overrides: Partial<ApiServerAccess> = {}): ApiServerAccess {
  return {
    server: url,
    basePath: '',
    context: 'demo',
    skipTlsVerify: false,
    tls: () => ({ rejectUnauthorized: true }),
    authHeaders: () => Promise.resolve({}),
    ...overrides,
  };
}

function aProcess(load: () => Promise<ApiServerAccess> = async () => access()) {
  const clock = { nowMs: 0 };
  const warnings: string[] = [];
  let reads = 0;
  const loadKubeconfig = () => {
    reads += 1;
    return load();
  };
  const clusters = new ClusterConnections({ nowMs: () => clock.nowMs, loadKubeconfig });
  const connect = (spec = aClusterSpec()) =>
    clusters.connect(spec, {
      loop: 'system-namespaces',
      signal: new AbortController().signal,
      warn: (text) => {
        warnings.push(text);
      },
    });
  return { clusters, clock, connect, warnings, reads: () => reads };
}

describe('the connections of a process', () => {
  test('a kubeconfig is read once for the passes of five minutes', async () => {
    const { clock, connect, reads } = aProcess();
    await connect();
    clock.nowMs += 4 * MINUTE;
    await connect();
    expect(reads()).toBe(1);
    clock.nowMs += MINUTE;
    await connect();
    expect(reads()).toBe(2);
  });

  test('each cluster has its own, and another context is another kubeconfig', async () => {
    const { connect, reads } = aProcess();
    await connect(aClusterSpec({ name: 'a' }));
    await connect(aClusterSpec({ name: 'b' }));
    await connect(aClusterSpec({ name: 'a', kubeconfig: { file: 'kubeconfig.yml', context: 'other' } }));
    expect(reads()).toBe(3);
  });

  test('a read that fails is tried again by the next pass', async () => {
    const outcomes = [Promise.reject(new ClusterError('BadKubeconfig', 'cannot be read')), Promise.resolve(access())];
    const { connect } = aProcess(() => outcomes.shift() ?? Promise.resolve(access()));
    await expect(connect()).rejects.toMatchObject({ code: 'BadKubeconfig' });
    await expect(connect()).resolves.toBeDefined();
  });

  test('a read that hangs does not hold up the next pass', async () => {
    const outcomes = [new Promise<never>(() => {}), Promise.resolve(access())];
    const { connect } = aProcess(() => outcomes.shift() ?? Promise.resolve(access()));
    void connect();
    await expect(connect()).resolves.toBeDefined();
  });

  test('after a refused credential the kubeconfig is read anew', async () => {
    const { clusters, connect, reads } = aProcess();
    const { kubernetes } = await connect();
    await expect(kubernetes.get({ kind: 'Namespace', name: 'default' })).rejects.toMatchObject({
      code: 'Unauthorized',
    });
    await connect();
    expect(reads()).toBe(2);
    await clusters.close();
  });

  test('that a certificate is not verified is told once, not at every reading', async () => {
    const { clock, connect, warnings } = aProcess(async () => access({ skipTlsVerify: true }));
    await connect();
    clock.nowMs += 10 * MINUTE;
    await connect();
    expect(warnings).toEqual(['the kubeconfig says not to verify the certificate of the API server']);
  });
});
