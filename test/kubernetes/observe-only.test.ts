import { describe, expect, test } from '@jest/globals';
import type { ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import { observeOnly } from '../../lib/kubernetes/observe-only.ts';

const stored = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'kubernetes', namespace: 'default', uid: 'u', resourceVersion: '7', labels: { a: '1', b: '2' } },
};
const ref = { kind: 'Service', namespace: 'default', name: 'kubernetes' } as const;

/** Reads answer from one stored object; a write fails the test. */
function observing() {
  const told: string[] = [];
  const never = () => Promise.reject(new Error('nothing may be written'));
  const claim = { name: 'kubernetes' };
  const port = {
    get: ({ name }: { name: string }) => Promise.resolve(name === 'kubernetes' ? stored : undefined),
    list: () => Promise.resolve([stored]),
    services: async function* () {
      yield claim;
    },
    create: never,
    update: never,
    mergePatch: never,
    delete: never,
  } as unknown as ClusterPort;
  return { port: observeOnly(port, (description) => told.push(description)), told };
}

describe('a cluster that is only observed', () => {
  test('is read as it is', async () => {
    const { port, told } = observing();
    await expect(port.get(ref)).resolves.toBe(stored);
    await expect(port.list('Service', 'default')).resolves.toEqual([stored]);
    const names: string[] = [];
    for await (const { name } of port.services()) {
      names.push(name);
    }
    expect(names).toEqual(['kubernetes']);
    expect(told).toEqual([]);
  });

  test('has each write told instead of made, and answered as if it were', async () => {
    const { port, told } = observing();
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } };
    await expect(port.create(namespace)).resolves.toEqual({ outcome: 'created', object: namespace });
    await expect(port.update(stored)).resolves.toEqual({ outcome: 'updated', object: stored });
    await expect(port.delete(stored)).resolves.toBe('deleted');
    await expect(port.mergePatch(ref, { metadata: { labels: { a: null, c: '3' } } })).resolves.toMatchObject({
      outcome: 'updated',
      object: { metadata: { name: 'kubernetes', labels: { b: '2', c: '3' } } },
    });
    expect(told).toEqual([
      'create Namespace kube-system',
      'update Service default/kubernetes',
      'delete Service default/kubernetes',
      'patch Service default/kubernetes',
    ]);
  });

  test('has no patch told of what is not there', async () => {
    const { port, told } = observing();
    await expect(port.mergePatch({ ...ref, name: 'other' }, {})).resolves.toEqual({ outcome: 'notFound' });
    expect(told).toEqual([]);
  });
});
