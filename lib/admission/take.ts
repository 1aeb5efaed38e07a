import { AllocatorError } from '../allocator/errors.ts';
import { canonicalAddress, familyOf } from '../allocator/ip-address.ts';
import { holdOn } from '../cluster/held-items.ts';
import type { Hold } from '../cluster/hold.ts';
import type { GivenItems } from '../table/admissions.ts';
import { TableError } from '../table/errors.ts';
import type { RangeAllocations } from '../table/range-allocations.ts';
import type { WantedPort } from './node-ports.ts';
import type { TakenItems } from './patch.ts';
import type { Plan, WantedAddress } from './plan.ts';
import type { ClusterRanges } from './ranges.ts';

export interface TakeOptions {
  readonly ranges: ClusterRanges;
  /** The same, for a little longer: to give back what was taken when time is over. */
  readonly closing: ClusterRanges;
  /** What this Service was given a moment ago, which is its own as long as it stays taken and nobody holds it. */
  readonly lately: GivenItems;
  readonly holdOwner: string | undefined;
  readonly nowMs: () => number;
  /** Takes what could not be given back: it is freed as a leak. */
  readonly tell: (error: TableError) => void;
}

export type TakeResult =
  | {
      readonly outcome: 'taken';
      readonly items: TakenItems;
      /** What of it was not this Service's before. */
      readonly fresh: GivenItems;
      /** Gives that back. Never throws. */
      readonly undo: () => Promise<void>;
    }
  | {
      readonly outcome: 'refused';
      readonly error: AllocatorError;
      readonly address?: WantedAddress;
      readonly port?: WantedPort;
    };

/**
 * Takes all that a plan lacks, or nothing: what was taken is given back when something else is refused or fails, which
 * is safe, as nobody was told of it. Addresses come before ports, as in the registry.
 * @throws TableError when nobody can tell. What was taken by then and could not be given back is freed as a leak.
 */
export async function takeFor(plan: Plan, options: TakeOptions): Promise<TakeResult> {
  const undos: Undo[] = [];
  const undo = () => undoAll(undos, options.tell);
  const addresses: Taken<string>[] = [];
  try {
    for (const address of plan.addresses) {
      const taken = await takeAddress(address, plan, options);
      if ('error' in taken) {
        await undo();
        return { outcome: 'refused', error: taken.error, address };
      }
      undos.push(taken.undo);
      addresses.push(taken);
    }
    const ports = await takePorts(plan, options);
    if ('error' in ports) {
      await undo();
      const port = plan.ports[ports.index ?? -1];
      return { outcome: 'refused', error: ports.error, ...(port !== undefined && { port }) };
    }
    undos.push(ports.undo);
    const items = { addresses: addresses.flatMap((each) => each.items), ports: ports.items };
    const fresh = { addresses: addresses.flatMap((each) => each.fresh), ports: ports.fresh };
    return { outcome: 'taken', items, fresh, undo };
  } catch (error) {
    await undo();
    throw error;
  }
}

type Undo = () => Promise<unknown>;

interface Taken<Item> {
  readonly items: readonly Item[];
  readonly fresh: readonly Item[];
  readonly undo: Undo;
}

interface Refused {
  readonly error: AllocatorError;
  /** Absent: no single one of what was wanted. */
  readonly index?: number;
}

function takeAddress({ family, value }: WantedAddress, { named }: Plan, options: TakeOptions) {
  const own = options.lately.addresses.filter((address) => familyOf(address) === family);
  const range = options.ranges.addresses(family);
  const wants = { values: [value && canonical(value)], own, named: named.addresses.map(canonical) };
  return takeFrom(range, options.closing.addresses(family), wants, options);
}

async function takePorts(plan: Plan, options: TakeOptions): Promise<Taken<number> | Refused> {
  const wants = { values: plan.ports.map(({ value }) => value), own: options.lately.ports, named: plan.named.ports };
  return takeFrom(options.ranges.ports, options.closing.ports, wants, options);
}

interface Wants<Item> {
  readonly values: readonly (Item | undefined)[];
  readonly own: readonly Item[];
  readonly named: readonly Item[];
}

/** In one write. */
async function takeFrom<Item>(
  range: RangeAllocations<Item>,
  closing: RangeAllocations<Item>,
  wants: Wants<Item>,
  { holdOwner, nowMs }: TakeOptions,
): Promise<Taken<Item> | Refused> {
  const found = await lookUp(range, wants);
  if (found instanceof AllocatorError) return { error: found };
  const { own, holds } = found;
  const items = ownItems({ ...wants, own });
  const missing = [...wants.values.keys()].filter((place) => items[place] === undefined);
  // Only what is held as it was seen to be: what is held since must not be given back as if it had been free.
  const takeUp = { nowMs: nowMs(), from: holds, ...(holdOwner !== undefined && { holdOwner }) };
  const wanted = missing.map((place) => {
    const value = wants.values[place];
    return value === undefined ? 'next' : { value };
  });
  const taken = await range.take(wanted, { takeUp });
  if (taken.outcome === 'refused') {
    const index = taken.index === undefined ? undefined : missing[taken.index];
    return { error: taken.error, ...(index !== undefined && { index }) };
  }
  for (const [place, item] of taken.items.entries()) items[missing[place] ?? -1] = item;
  // Given back, what was held would be free: it stays taken, and a pass frees it.
  const free = taken.items.filter((item) => holdOn(holds, String(item)) === undefined);
  return { items: items.filter((item) => item !== undefined), fresh: taken.items, undo: () => closing.giveBack(free) };
}

/** Which of what is wanted this Service has been given already, by place. */
function ownItems<Item>({ values, own, named }: Wants<Item>): (Item | undefined)[] {
  const spare = own.filter((item) => !named.includes(item));
  const seen = new Set<Item>();
  return values.map((value) => {
    if (value === undefined) return spare.shift();
    // The same one twice is for the range to refuse.
    if (!own.includes(value) || seen.has(value)) return undefined;
    seen.add(value);
    return value;
  });
}

/**
 * What this Service was given and is still its own: it may have been released since, or the range be another. And the
 * holds on what it asks for.
 */
async function lookUp<Item>(
  range: RangeAllocations<Item>,
  { values, own }: Wants<Item>,
): Promise<{ readonly own: readonly Item[]; readonly holds: readonly Hold[] } | AllocatorError> {
  const given = [...new Set(own)];
  const asked = values.filter((value) => value !== undefined);
  if (given.length + asked.length === 0) return { own: [], holds: [] };
  const found = await range.lookUpEach([...given, ...asked]);
  if (found instanceof AllocatorError) return found;
  return {
    own: given.filter((_, index) => {
      const each = found[index];
      return each?.inRange === true && each.taken && each.hold === undefined;
    }),
    holds: found.slice(given.length).flatMap((each) => (each.inRange && each.hold ? [each.hold] : [])),
  };
}

/** The last first. */
async function undoAll(undos: Undo[], tell: TakeOptions['tell']): Promise<void> {
  for (const undo of undos.splice(0).reverse()) {
    try {
      await undo();
    } catch (error) {
      if (!(error instanceof TableError)) throw error;
      tell(error);
    }
  }
}

function canonical(address: string): string {
  return canonicalAddress(address) ?? address;
}
