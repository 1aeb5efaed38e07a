import { expect, test } from '@jest/globals';
import { listPausesMs, readClusterList } from '../../lib/dispatch/cluster-list.ts';
import { LOOPS, type Loop } from '../../lib/spec/cluster-spec.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { aDispatchWorld } from '../support/dispatch-world.ts';

const PAGES = 10;

/** Reads a cluster list of ten pages. @returns the time of each read */
async function pagedTable(loop: Loop): Promise<readonly number[]> {
  const { table } = aDispatchWorld();
  for (let at = 0; at < PAGES; at += 1) await registerCluster(table, aClusterSpec({ name: `c-${at}` }));
  let nowMs = 0;
  const readAtMs: number[] = [];
  const pages: KeyValueTable['pages'] = async function* (cluster, prefix, beforeNext) {
    for (const item of await table.list(cluster, prefix)) {
      if (readAtMs.length > 0) await beforeNext?.();
      readAtMs.push(nowMs);
      yield [item];
    }
  };
  const { entries } = await readClusterList({ ...table, pages }, loop, async (ms) => {
    nowMs += ms;
  });
  expect(entries).toHaveLength(PAGES);
  expect(nowMs).toBeLessThanOrEqual(listPausesMs(loop));
  return readAtMs;
}

test('if the loops of 10,000 clusters begin at the same time, they read registrations with less than 3,000 read units per second', async () => {
  const all = (await Promise.all(LOOPS.map(pagedTable))).flat();
  const UNITS_OF_A_PAGE = 256;
  for (let second = 0; second < 12; second += 1) {
    const read = all.filter((ms) => Math.floor(ms / 1000) === second).length * UNITS_OF_A_PAGE;
    // The ticks of the previous minute use 1,000 read units per second at the same time.
    expect(read + 1_000).toBeLessThan(3_000);
  }
});
