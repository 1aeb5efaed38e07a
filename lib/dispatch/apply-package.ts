import { readFileSync } from 'node:fs';
import path from 'node:path';
import { isNativeError } from 'node:util/types';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { LISTING_MS } from '../runtime/budgets.ts';
import type { PackagedSpec } from '../runtime/environment.ts';
import { type Invocation, withinInvocation } from '../runtime/invocation.ts';
import { parseClusterSpec } from '../spec/parse-cluster-spec.ts';
import { describeFaults } from '../spec/spec-fault.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { type Packager, registerPackaged, unregisterPackaged } from '../table/packaged-registration.ts';
import { errorSentence } from '../telemetry/describe-error.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import type { ClusterSummary } from './cluster-list.ts';

export function readPackagedSpec(file: string): PackagedSpec {
  const name = path.basename(file);
  const text = textIn(file);
  if (text === undefined) return { outcome: 'none' };
  if (typeof text !== 'string') return { outcome: 'invalid', reason: `${name} cannot be read: ${text.message}` };
  const parsed = parseClusterSpec(text);
  if ('faults' in parsed) return { outcome: 'invalid', reason: describeFaults(name, parsed.faults) };
  return { outcome: 'spec', spec: parsed.spec };
}

function textIn(file: string): string | Error | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (!isNativeError(error)) throw error;
    return 'code' in error && error.code === 'ENOENT' ? undefined : error;
  }
}

/**
 * Registers the `cluster.yml` of this function's package, and unregisters what only an earlier package of the stack
 * contained. A file that is not valid changes nothing. Never throws: a failure is logged and counted, and the next tick
 * tries again.
 * @returns whether any registration changed.
 */
export async function applyPackage(invocation: Invocation, entries: readonly ClusterSummary[]): Promise<boolean> {
  const { environment, telemetry } = invocation;
  const { packaged, stack } = environment;
  if (packaged === undefined || stack === undefined) return false;
  const found = packaged.spec();
  if (found.outcome === 'invalid') {
    logFailure(telemetry, found.reason);
    return false;
  }
  const spec = found.outcome === 'spec' ? found.spec : undefined;
  const packager: Packager = { stack, startedAtMs: packaged.startedAtMs, nowMs: environment.nowMs() };
  const removed = entries.filter(({ name, owner }) => owner?.stack === stack && owner.packaged && name !== spec?.name);
  try {
    return await withinInvocation(invocation, LISTING_MS, async (signal) => {
      const table = environment.table(signal);
      const registered = spec !== undefined && (await register(table, spec, packager, telemetry));
      const unregistered = await Promise.all(removed.map(({ name }) => unregister(table, name, packager, telemetry)));
      return registered || unregistered.includes(true);
    });
  } catch (error) {
    logFailure(telemetry, errorSentence(error));
    return false;
  }
}

async function register(
  table: KeyValueTable,
  spec: ClusterSpec,
  packager: Packager,
  telemetry: Telemetry,
): Promise<boolean> {
  const { name: cluster } = spec;
  const result = await registerPackaged(table, spec, packager);
  switch (result.outcome) {
    case 'unchanged':
      return false;
    case 'registered':
      telemetry.log('info', 'cluster.yml registered', { cluster, generation: result.cluster.generation });
      return true;
    case 'superseded':
      telemetry.log('info', 'cluster.yml of an earlier deployment ignored', { cluster });
      return false;
    case 'ownedElsewhere': {
      const message = 'cluster.yml not registered: another stack owns the cluster';
      telemetry.log('warn', message, { cluster, ownedBy: result.stack });
      return false;
    }
  }
}

async function unregister(
  table: KeyValueTable,
  cluster: string,
  packager: Packager,
  telemetry: Telemetry,
): Promise<boolean> {
  const done = await unregisterPackaged(table, cluster, packager);
  if (done) telemetry.log('info', 'cluster unregistered: it is no longer in the package', { cluster });
  return done;
}

function logFailure(telemetry: Telemetry, error: string): void {
  telemetry.count('failures', 1);
  telemetry.log('error', 'cluster.yml not registered', { errors: error.split('\n') });
}
