import { expect, test } from '@jest/globals';
import { planApply } from '../../../cli/apply/plan.ts';
import type { SpecFile } from '../../../cli/apply/spec-files.ts';
import type { ClusterSpec } from '../../../lib/cluster/cluster-spec.ts';
import type { ListedCluster } from '../../../lib/table/clusters.ts';
import { TableError } from '../../../lib/table/key-value-table.ts';
import { aClusterSpec } from '../../support/a-cluster-spec.ts';

function fileOf(name: string, fields: Partial<ClusterSpec> = {}): SpecFile {
  return { place: `${name}.yml`, spec: aClusterSpec({ name, ...fields }) };
}

function registered(name: string): ListedCluster {
  return { spec: aClusterSpec({ name }), generation: 1, rangesGeneration: 1, writtenAtMs: 0 };
}

const plan = (files: readonly SpecFile[], clusters: readonly ListedCluster[], prune: boolean) =>
  planApply(files, { clusters, unreadable: [] }, prune).map(({ action, name }) => `${action} ${name}`);

test('the plan of cluster apply has the changes in the order of the files, then the removals', () => {
  const files = [fileOf('new'), fileOf('same'), fileOf('other', { mode: 'observe' })];
  const known = [registered('gone'), registered('other'), registered('same')];
  expect(plan(files, known, true)).toEqual(['create new', 'keep same', 'change other', 'remove gone']);
  expect(plan(files.slice(1, 2), known, false)).toEqual(['keep same']);
});

test('the plan of cluster apply replaces a registration that cannot be read', () => {
  const unreadable = [{ name: 'broken', error: new TableError('Corrupt', 'does not parse') }];
  const steps = planApply([fileOf('broken')], { clusters: [], unreadable }, false);
  expect(steps.map(({ intention }) => intention)).toEqual(['to be replaced: its registration cannot be read']);
});
