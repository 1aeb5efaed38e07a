import { describe, expect, test } from '@jest/globals';
import { type FoundRegistration, intention, nameOf, planApply } from '../../../cli/apply/plan.ts';
import type { SpecFile } from '../../../cli/apply/spec-files.ts';
import type { ClusterSpec } from '../../../lib/cluster/cluster-spec.ts';
import type { RegisteredCluster } from '../../../lib/table/clusters.ts';
import { TableError } from '../../../lib/table/errors.ts';
import { aClusterSpec } from '../../support/a-cluster-spec.ts';

const PACKAGED = { owner: { stack: 'prod', packaged: { startedAtMs: 1, writtenAtMs: 1 } } };

function fileOf(name: string, fields: Partial<ClusterSpec> = {}): SpecFile {
  return { place: `${name}.yml`, folder: '.', spec: aClusterSpec({ name, ...fields }) };
}

function registered(name: string, fields: Partial<RegisteredCluster> = {}): RegisteredCluster {
  return { spec: aClusterSpec({ name }), generation: 1, rangesGeneration: 1, ...fields };
}

function plan(files: readonly SpecFile[], known: readonly RegisteredCluster[], { prune = false } = {}) {
  const byName = new Map<string, FoundRegistration>(known.map((cluster) => [cluster.spec.name, cluster]));
  return planApply(files, (name) => byName.get(name), prune ? known : undefined);
}

function told({ steps }: ReturnType<typeof planApply>): string[] {
  return steps.map((step) => `${nameOf(step)}: ${intention(step)}`);
}

describe('the plan of cluster apply', () => {
  test('has the changes in the order of the files, then the removals', () => {
    const files = [fileOf('new'), fileOf('same'), fileOf('other', { mode: 'observe' })];
    const known = [registered('gone'), registered('other'), registered('same')];
    expect(told(plan(files, known, { prune: true }))).toEqual([
      'new: to be created (mode enforce, allocator apiserver, 10.0.0.0/24, 1 API server)',
      'same: unchanged',
      'other: to be changed',
      'gone: to be removed: it is in no file',
    ]);
  });

  test('removes nothing without --prune', () => {
    expect(told(plan([fileOf('same')], [registered('same'), registered('gone')]))).toEqual(['same: unchanged']);
  });

  test('replaces a registration that cannot be read', () => {
    const broken = new TableError('Corrupt', 'does not parse');
    const { steps } = planApply([fileOf('broken')], () => broken, undefined);
    expect(steps).toMatchObject([{ action: 'create', unreadable: broken }]);
    expect(steps.map(intention)).toEqual(['to be replaced: its registration cannot be read']);
  });

  test('refuses to change a packaged cluster, unless it is the same', () => {
    const known = [registered('same', PACKAGED), registered('other', PACKAGED)];
    const { packaged } = plan([fileOf('same'), fileOf('other', { mode: 'observe' })], known);
    expect(packaged.map(({ spec }) => spec.name)).toEqual(['other']);
  });

  test('keeps a packaged cluster that is in no file', () => {
    const { steps, left } = plan([fileOf('a')], [registered('a'), registered('b', PACKAGED)], { prune: true });
    expect(steps.map(nameOf)).toEqual(['a']);
    expect(left.map(({ spec }) => spec.name)).toEqual(['b']);
  });
});
