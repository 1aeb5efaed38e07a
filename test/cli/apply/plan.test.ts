import { expect, test } from '@jest/globals';
import { clusterOfStep, type FoundRegistration, intention, planApply } from '../../../cli/apply/plan.ts';
import type { SpecFile } from '../../../cli/apply/spec-files.ts';
import type { ClusterSpec } from '../../../lib/cluster/cluster-spec.ts';
import type { RegisteredCluster } from '../../../lib/table/clusters.ts';
import { TableError } from '../../../lib/table/key-value-table.ts';
import { aClusterSpec } from '../../support/a-cluster-spec.ts';

function fileOf(name: string, fields: Partial<ClusterSpec> = {}): SpecFile {
  return { place: `${name}.yml`, spec: aClusterSpec({ name, ...fields }) };
}

function registered(name: string, fields: Partial<RegisteredCluster> = {}): RegisteredCluster {
  return { spec: aClusterSpec({ name }), generation: 1, rangesGeneration: 1, ...fields };
}

function plan(files: readonly SpecFile[], known: readonly RegisteredCluster[], { prune = false } = {}) {
  const byName = new Map<string, FoundRegistration>(known.map((cluster) => [cluster.spec.name, cluster]));
  return planApply(files, (name) => byName.get(name), prune ? known : undefined);
}

function actions(steps: ReturnType<typeof planApply>): string[] {
  return steps.map((step) => `${step.action} ${clusterOfStep(step)}`);
}

test('the plan of cluster apply has the changes in the order of the files, then the removals', () => {
  const files = [fileOf('new'), fileOf('same'), fileOf('other', { mode: 'observe' })];
  const known = [registered('gone'), registered('other'), registered('same')];
  expect(actions(plan(files, known, { prune: true }))).toEqual([
    'create new',
    'keep same',
    'change other',
    'remove gone',
  ]);
  expect(actions(plan(files.slice(1, 2), known))).toEqual(['keep same']);
});

test('the plan of cluster apply replaces a registration that cannot be read', () => {
  const broken = new TableError('Corrupt', 'does not parse');
  const steps = planApply([fileOf('broken')], () => broken, undefined);
  expect(steps.map(intention)).toEqual(['to be replaced: its registration cannot be read']);
});
