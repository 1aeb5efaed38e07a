import { expect, test } from '@jest/globals';
import { readsOf } from '../../../cli/page/serve-page.ts';
import { registerCluster } from '../../../lib/table/cluster-registration.ts';
import type { KeyValueTable } from '../../../lib/table/key-value-table.ts';
import { aClusterSpec } from '../../support/a-cluster-spec.ts';
import { aTable } from '../../support/stand-in.ts';

test.each([
  { many: 50, what: 'with their ranges', prefixes: ['masterleases/', 'ranges/', 'runs/'] },
  { many: 51, what: 'without them', prefixes: ['masterleases/', 'runs/'] },
])('a live page reads $many clusters once each, $what', async ({ many, prefixes }) => {
  const table = aTable();
  for (let n = 0; n < many; n++) await registerCluster(table, aClusterSpec({ name: `c-${n}` }));
  const lists: string[] = [];
  const counted: KeyValueTable = {
    ...table,
    list: (cluster, prefix) => {
      if (cluster === 'c-7') lists.push(prefix);
      return table.list(cluster, prefix);
    },
  };
  const { readFleet } = readsOf(
    () => counted,
    't',
    () => 0,
  );
  expect((await readFleet(new AbortController().signal)).clusters).toHaveLength(many);
  expect(lists.sort()).toEqual(prefixes);
});
