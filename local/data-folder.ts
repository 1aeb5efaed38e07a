import path from 'node:path';

/** Where the folders of clusters are, from the working directory on. */
export const DATA_ROOT = '.kbctl';

/** Where a cluster's table is kept, and what tells other commands that its loops run: absolute. */
export function dataFolder(cluster: string, named: string | undefined): string {
  return path.resolve(named ?? path.join(DATA_ROOT, cluster));
}
