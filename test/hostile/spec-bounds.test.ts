import { expect, test } from '@jest/globals';
import { parseClusterSpec } from '../../cli/spec/parse-cluster-spec.ts';
import { validateClusterSpec } from '../../cli/spec/validate-cluster-spec.ts';
import { BOUNDS, LONGEST_SPEC_TEXT, MOST_HOSTS } from '../../lib/cluster/bounds.ts';
import { CLUSTERS, clusterContent, readCluster } from '../../lib/table/clusters.ts';
import { minimal } from '../cli/spec/spec-support.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { countedWriteIds, memoryTable } from '../support/memory-table.ts';

const ATTACK = 2_000;

function specWith(field: string, value: unknown): object {
  const [outer = '', inner] = field.split('.');
  return { ...minimal, [outer]: inner === undefined ? value : { [inner]: value } };
}

test.each(Object.entries<number>(BOUNDS['cluster spec']))(
  'a cluster spec with too many entries in %s is refused by its field, number and limit, in a file and in the table',
  async (field, most) => {
    const entries = Array.from({ length: ATTACK }, () => ({}));
    const result = validateClusterSpec(specWith(field, entries));
    const fault = { path: field, message: `has ${ATTACK} entries`, fix: `write at most ${most}` };
    expect(result).toMatchObject({ faults: [fault] });

    const table = memoryTable({ nowMs: () => 0, newWriteId: countedWriteIds() });
    const spec = { ...aClusterSpec({ name: 'a' }), ...specWith(field, entries) };
    const content = clusterContent({ spec: aClusterSpec({ name: 'a' }), generation: 1, rangesGeneration: 1 });
    await table.put({ ...content, cluster: CLUSTERS, key: 'a', value: { ...Object(content.value), spec } }, undefined);
    await expect(readCluster(table, 'a')).rejects.toMatchObject({
      code: 'Corrupt',
      message: expect.stringContaining(`${ATTACK} entries in ${field} of its spec, and at most ${most} are accepted`),
    });
  },
);

test('a cluster spec may contain as many host names as one EndpointSlice has room for', () => {
  const apiServers = Array.from({ length: MOST_HOSTS + 1 }, (_, index) => ({ host: `api-${index}.example.com` }));
  expect(validateClusterSpec({ ...minimal, apiServers: apiServers.slice(1) })).toHaveProperty('spec');
  expect(validateClusterSpec({ ...minimal, apiServers })).toMatchObject({
    faults: [{ fix: 'write at most 25 of them' }],
  });
});

test('a cluster spec that is too long is not parsed', () => {
  expect(parseClusterSpec('a: {}\n'.repeat(LONGEST_SPEC_TEXT))).toMatchObject({
    faults: [{ message: expect.stringContaining(`at most ${LONGEST_SPEC_TEXT} are read`) }],
  });
});
