import { describe, expect, test } from '@jest/globals';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import { systemNamespaces } from '../../lib/loops/system-namespaces.ts';
import type { WriteAnswer } from '../support/memory-cluster.ts';
import { PassWorld } from '../support/pass-world.ts';

/** The namespaces in the spec. They include one that is not a default. */
const SYSTEM = ['kube-system', 'kube-public', 'default', 'platform'];

/**
 * Returns a world whose cluster has these namespaces. For each name in `refuse`, its function returns the answer to the creation
 * of that namespace.
 */
function namespaces(existing: readonly string[], refuse: Readonly<Record<string, () => WriteAnswer>> = {}): PassWorld {
  const objects = existing.map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }));
  const world = new PassWorld({ systemNamespaces: SYSTEM }, objects);
  world.cluster.beforeWrite = (_, { metadata }) => refuse[metadata.name]?.();
  return world;
}

describe('the system-namespaces loop', () => {
  test.each([
    { name: 'with one system namespace', existing: ['kube-system', 'foo'], created: SYSTEM.slice(1) },
    { name: 'with all four namespaces', existing: SYSTEM, created: [] },
  ])('the system-namespaces loop creates the missing namespaces in a cluster $name', async ({ existing, created }) => {
    const world = namespaces(existing);
    const report = await world.pass(systemNamespaces);
    expect(world.cluster.writes).toEqual(created.map(() => 'create namespaces'));
    const changes = created.map((name) => `created namespace ${name}`);
    expect(report).toEqual({ changes, findings: [], counts: { namespaces: 4 }, errors: [] });
  });

  test('a namespace that another writer creates first causes no error, and is not reported as a change', async () => {
    const world = namespaces([], { default: () => ({ outcome: 'alreadyExists' }) });
    const report = await world.pass(systemNamespaces);
    expect(report.errors).toEqual([]);
    expect(report.changes).not.toContain('created namespace default');
  });

  const forbid = () => {
    throw new ClusterError('Forbidden', 'not allowed');
  };
  test.each<[string, () => WriteAnswer]>([
    ['Rejected', () => ({ outcome: 'invalid', message: 'not allowed' })],
    ['Forbidden', forbid],
  ])('a namespace that is refused with %s is reported, and the other namespaces are created', async (code, refusal) => {
    const report = await namespaces([], { 'kube-public': refusal }).pass(systemNamespaces);
    const message = 'unable to create required kubernetes system Namespace kube-public: not allowed';
    expect(report.errors).toMatchObject([{ code, message }]);
    expect(report.changes).toHaveLength(3);
  });

  test('a namespace that is being deleted is reported as a finding, and the other namespaces are created', async () => {
    const world = namespaces([]);
    const metadata = { name: 'platform', deletionTimestamp: '2026-01-01T11:00:00Z' };
    world.cluster.place({ apiVersion: 'v1', kind: 'Namespace', metadata });
    const report = await world.pass(systemNamespaces);
    const message = expect.stringContaining('since 2026-01-01T11:00:00Z');
    expect(report.findings).toMatchObject([{ type: 'notCorrected', item: 'platform', message }]);
    expect([report.errors, report.changes.length]).toEqual([[], 3]);
  });

  test('if the loop has a bug, the pass throws the error and does not report it as an error of the cluster', async () => {
    const world = namespaces([]);
    const get = () => Promise.reject(new TypeError('x is not a function'));
    const pass = world.pass(systemNamespaces, { kubernetes: { ...world.cluster.port, get } });
    await expect(pass).rejects.toThrow(TypeError);
  });
});
