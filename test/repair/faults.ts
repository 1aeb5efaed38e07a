import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import type { ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { tableThrough } from '../support/table-through.ts';
import { listing } from './repair-cluster.ts';

/** Thrown in a pass's face where its process is to end. */
class Crash extends Error {
  override readonly name = 'Crash';
}

/** Ends the process at the call with the number `at`, counted from 0: before it has happened, or after. */
export class Cut {
  #calls = 0;
  readonly #at: number;
  readonly #when: 'before' | 'after';

  constructor(at: number, when: 'before' | 'after') {
    this.#at = at;
    this.#when = when;
  }

  /** Whether the pass came as far as the cut. */
  get happened(): boolean {
    return this.#calls > this.#at;
  }

  async call<T>(step: () => Promise<T>): Promise<T> {
    const isHere = this.#calls++ === this.#at;
    if (isHere && this.#when === 'before') throw new Crash('before the call');
    const result = await step();
    if (isHere) throw new Crash('after the call');
    return result;
  }
}

export function cutTable(table: KeyValueTable, cut: Cut): KeyValueTable {
  return tableThrough(table, (step) => cut.call(step));
}

/** A list that can be cut at every Service. */
export function cutServices(services: readonly ServiceClaim[], cut: Cut): ClusterPort {
  return listing(() => each(services, cut));
}

async function* each(services: readonly ServiceClaim[], cut: Cut): AsyncGenerator<ServiceClaim> {
  for (const service of services) yield await cut.call(async () => service);
  await cut.call(async () => undefined);
}

/** The table, with some of its calls answered otherwise. */
export function tableWith(table: KeyValueTable, changed: Partial<KeyValueTable>): KeyValueTable {
  return { ...table, ...changed };
}

/** A list of Services that breaks off after these. */
export function brokenList(services: readonly ServiceClaim[], error: Error): ClusterPort {
  return listing(async function* list() {
    yield* services;
    throw error;
  });
}
