import { CLUSTERS } from '../../lib/table/clusters.ts';
import { copyOf } from '../support/memory-table.ts';
import { CLUSTER } from './cluster.ts';
import type { Process, ProcessKind } from './process.ts';
import { StandInTable, type Store, type TableWrite } from './stand-in-table.ts';
import { leaseFieldIn, type StoredRangeItem, storedRangeIn } from './stored-items.ts';
import type { World } from './world.ts';

/** The table of the world: what it has, what incidents do to it, and the judge of every write. */
export class Table extends StandInTable {
  readonly #world: World;
  /** Copies from times at which it had every owner. */
  readonly copies: { readonly atMs: number; readonly store: Store }[] = [];
  /** Writes of this item by processes of this kind are lost until this time. */
  lostWrites: { readonly of: ProcessKind; readonly key: string; readonly untilMs: number } | undefined;
  /** The time for which a deregistration stands still after each read of the leases. */
  haltOfDrainsMs = 0;
  onLeases: (() => void) | undefined;
  onRegistrationRead: ((by: Process) => void) | undefined;
  readonly #begunAtMs = new Map<string, number>();
  readonly #onBegun = new Map<string, () => void>();

  constructor(world: World) {
    super(() => world.clock.nowMs);
    this.#world = world;
  }

  /** Keeps a copy, which an incident may restore later. */
  keepCopy(): void {
    this.copies.push({ atMs: this.#world.clock.nowMs, store: copyOf(this.store) });
  }

  stored(key: string): StoredRangeItem {
    return storedRangeIn(this.find(CLUSTER, key));
  }

  /** Returns whether the table has a withdrawal of the address that ends after `sinceMs`. */
  isMarked(address: string, sinceMs = this.#world.clock.nowMs): boolean {
    return this.leaseField(address, 'withdrawnUntilMs') > sinceMs;
  }

  /** Returns a time of the lease of an address, or its count of misses; 0 without one. */
  leaseField(address: string, field: string): number {
    return leaseFieldIn(this.find(CLUSTER, 'masterleases'), address, field);
  }

  /** Waits until a request to allocate has its record. */
  onceBegun(id: string): Promise<void> {
    return new Promise((resolve) => void this.#onBegun.set(id, resolve));
  }

  begunAtMs(id: string): number {
    return this.#begunAtMs.get(id) ?? 0;
  }

  protected override hasRead(cluster: string, key: string, by: Process): void {
    if (cluster === CLUSTERS && this.#world.cluster.isPaused(key)) by.sawPauseIn = by.invocation;
    if (cluster === CLUSTERS && key === CLUSTER) this.onRegistrationRead?.(by);
    if (key === 'masterleases' && by.kind === 'deregister' && this.haltOfDrainsMs > 0) by.freeze(this.haltOfDrainsMs);
  }

  protected override hasWritten(write: TableWrite): void {
    const { cluster, key, after, by } = write;
    if (cluster !== CLUSTER) return;
    const { ranges } = this.#world;
    const isRange = key.startsWith('ranges/');
    this.#checkAllowed(write, isRange);
    if (isRange) ranges.check(write);
    if (key === 'masterleases') this.#leasesWritten(write);
    if (key.startsWith('requests/') && write.before === undefined) this.#begun(key.slice('requests/'.length));
    const isObserved = after?.['value']?.M?.['mode']?.S === 'observe';
    if (key === 'runs/cluster-ip-repair' && isObserved) {
      ranges.observed('ranges/serviceips');
      ranges.observed('ranges/secondaryserviceips');
    }
    if (key === 'runs/node-port-repair' && isObserved) ranges.observed('ranges/servicenodeports');
    if (!key.startsWith('runs/')) this.#world.note(`${by.name} wrote ${key}`);
  }

  #begun(id: string): void {
    this.#begunAtMs.set(id, this.#world.clock.nowMs);
    this.#onBegun.get(id)?.();
  }

  #checkAllowed(write: TableWrite, isRange: boolean): void {
    const { key, by } = write;
    const { cluster, stock } = this.#world;
    if (write.isReading) this.#world.violate('dryRun', `${by.name} wrote ${key} in a dry run or a look-up`);
    // The range of a cluster whose API servers allocate only informs users.
    if (isRange && stock !== undefined) return;
    cluster.checkMayWrite(by, isRange ? write.begunAtMs : 0, key);
    if (isRange && cluster.isPausedFor(write) && by.kind.endsWith('epair')) {
      this.#world.violate('paused', `${by.name} wrote ${key} although passes are paused`);
    }
  }

  #leasesWritten(write: TableWrite): void {
    this.onLeases?.();
    if (write.by.kind === 'deregister') this.#world.endpoints.checkMarked(write);
  }
}
