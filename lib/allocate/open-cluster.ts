import { nearestName } from '../cluster/nearest-name.ts';
import { callerRefusal } from '../dispatch/caller-keys.ts';
import { listClusters, type RegisteredCluster, readCluster } from '../table/clusters.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import type { Refusal } from './answer.ts';
import type { AllocateRequest } from './request.ts';

/** The cluster that a request is about, or why this function does nothing for it. @throws TableError */
export async function openCluster(
  table: KeyValueTable,
  { cluster: name, operation, callerKey }: Pick<AllocateRequest, 'cluster' | 'operation' | 'callerKey'>,
  stack: string | undefined,
): Promise<RegisteredCluster | Refusal> {
  const cluster = await readCluster(table, name);
  if (cluster === undefined) return notRegistered(table, name);
  const { spec, owner } = cluster;
  const message = callerRefusal(spec, callerKey, stack);
  if (message !== undefined) return { code: 'CallerRefused', message };
  if (operation === 'lookUp') return cluster;
  if (owner !== undefined && stack !== undefined && owner.stack !== stack) {
    return {
      code: 'OtherStack',
      message: `cluster ${name} belongs to the stack ${owner.stack}: invoke the allocate function of that one`,
    };
  }
  if (spec.allocator === 'table' && spec.mode === 'observe') {
    return {
      code: 'ObserveOnly',
      message: `cluster ${name} has "mode: observe": nothing is allocated or released until its spec says "mode: enforce"`,
    };
  }
  return cluster;
}

async function notRegistered(table: KeyValueTable, name: string): Promise<Refusal> {
  const { clusters, unreadable } = await listClusters(table);
  const names = [...clusters.map(({ spec }) => spec.name), ...unreadable.map((one) => one.name)];
  const nearest = nearestName(name, names);
  const hint = nearest === undefined ? '' : `; did you mean ${nearest}?`;
  return { code: 'NotRegistered', message: `no cluster of the name ${name} is registered${hint}` };
}
