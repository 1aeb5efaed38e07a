import { concurrently } from '../../lib/dispatch/concurrently.ts';
import { listClusters, type RegisteredCluster, readCluster } from '../../lib/table/clusters.ts';
import { TableError } from '../../lib/table/errors.ts';
import type { Cli } from '../cli.ts';
import type { Known } from './plan.ts';
import type { SpecFile } from './spec-files.ts';

export interface LookedUp {
  readonly known: (name: string) => Known;
  /** Everything that is registered, if that was asked for. */
  readonly all: readonly RegisteredCluster[];
  /** Names that are in no file and whose registrations cannot be read. */
  readonly unreadable: readonly string[];
}

const AT_ONCE = 16;

/** What is registered under the names of the files, and with `everything` what else is. */
export async function lookUp(cli: Cli, files: readonly SpecFile[], everything: boolean): Promise<LookedUp> {
  const { table } = await cli.openTable();
  const byName = new Map<string, Known>();
  const failures: unknown[] = [];
  const names = files.map(({ spec }) => spec.name);
  if (!everything) {
    await concurrently(names, AT_ONCE, async (name) => {
      await readCluster(table, name).then(
        (cluster) => byName.set(name, cluster),
        (error: unknown) => (isCorrupt(error) ? byName.set(name, error) : failures.push(error)),
      );
    });
    if (failures.length > 0) throw failures[0];
    return { known: (name) => byName.get(name), all: [], unreadable: [] };
  }
  const { clusters, unreadable } = await listClusters(table);
  for (const cluster of clusters) byName.set(cluster.spec.name, cluster);
  for (const { name, error } of unreadable) {
    if (names.includes(name) && !isCorrupt(error)) throw error;
    byName.set(name, error);
  }
  const others = unreadable.map(({ name }) => name).filter((name) => !names.includes(name));
  return { known: (name) => byName.get(name), all: clusters, unreadable: others };
}

/** What does not parse may be written anew; what a later version wrote may not. */
function isCorrupt(error: unknown): error is TableError {
  return error instanceof TableError && error.code === 'Corrupt';
}
