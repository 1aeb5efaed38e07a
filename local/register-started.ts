import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { differenceLine, specDifference } from '../cli/spec/written-spec.ts';
import type { ClusterSpec } from '../lib/cluster/cluster-spec.ts';
import { registerCluster } from '../lib/table/cluster-registration.ts';
import { readCluster } from '../lib/table/clusters.ts';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import { replaceFile } from './data-folder.ts';

export interface StartedSpec {
  readonly spec: ClusterSpec;
  readonly notes: readonly string[];
}

/**
 * Registers the cluster of a spec file. Changes with kbctl since the last start stay unless the file was edited too.
 * @param folder the folder of the spec of the last start
 */
export async function registerStarted(
  table: KeyValueTable,
  written: ClusterSpec,
  folder: string,
): Promise<StartedSpec> {
  const file = path.join(folder, 'started.json');
  const text = `${JSON.stringify(written, undefined, 2)}\n`;
  const last = await readFile(file, 'utf8').catch(() => undefined);
  const registered = await readCluster(table, written.name);
  const started = startingSpec(written, registered?.spec, last === text);
  await registerCluster(table, started.spec);
  await replaceFile(file, text, 0o600);
  return started;
}

function startingSpec(written: ClusterSpec, registered: ClusterSpec | undefined, isUnedited: boolean): StartedSpec {
  if (registered === undefined) return { spec: written, notes: [] };
  const [from, to] = isUnedited ? [written, registered] : [registered, written];
  const differences = specDifference(from, to).map((difference) => `  ${differenceLine(difference)}`);
  if (differences.length === 0) return { spec: written, notes: [] };
  if (!isUnedited) return { spec: written, notes: ['The spec file replaces what was registered:', ...differences] };
  return {
    spec: registered,
    notes: [
      'Kept, because the spec file was not edited since the last start ("kbctl cluster apply -f FILE" applies it):',
      ...differences,
    ],
  };
}
