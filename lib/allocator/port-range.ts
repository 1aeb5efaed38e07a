import { AllocationBitmap } from './bitmap.ts';
import { AllocatorError, rangeIsFull } from './errors.ts';
import { containsPort, type PortInterval, parsePortInterval, portIntervalText } from './port-interval.ts';
import type { Pick, RangeAllocator, RangeSnapshot } from './range-allocator.ts';
import { reservedPorts } from './reserved-band.ts';

/** The node ports of a cluster (`pkg/registry/core/service/portallocator/allocator.go`); every port of the range is usable. */
export class PortRange implements RangeAllocator<number> {
  readonly ports: PortInterval;
  readonly #bitmap: AllocationBitmap;

  constructor(ports: PortInterval, pick: Pick) {
    this.ports = ports;
    this.#bitmap = new AllocationBitmap({
      max: ports.size,
      spec: portIntervalText(ports),
      reserved: reservedPorts(ports.size),
      pick,
    });
  }

  get spec(): string {
    return this.#bitmap.spec;
  }

  get max(): number {
    return this.#bitmap.max;
  }

  get reserved(): number {
    return this.#bitmap.reserved;
  }

  get free(): number {
    return this.#bitmap.free;
  }

  get used(): number {
    return this.#bitmap.used;
  }

  indexOf(port: number): number | undefined {
    return Number.isInteger(port) && containsPort(this.ports, port) ? port - this.ports.base : undefined;
  }

  itemAt(index: number): number {
    return this.ports.base + index;
  }

  allocate(port: number): AllocatorError | undefined {
    const index = this.indexOf(port);
    if (index === undefined) return portNotInRange(this.spec);
    const taken = this.#bitmap.allocate(index);
    if (taken === true) return undefined;
    return taken === false ? portAlreadyAllocated() : taken;
  }

  allocateNext(): { readonly item: number } | AllocatorError {
    const index = this.#bitmap.allocateNext();
    return index === undefined ? rangeIsFull() : { item: this.itemAt(index) };
  }

  release(port: number): void {
    const index = this.indexOf(port);
    if (index !== undefined) this.#bitmap.release(index);
  }

  has(port: number): boolean {
    const index = this.indexOf(port);
    return index !== undefined && this.#bitmap.has(index);
  }

  *items(): Generator<number, void, undefined> {
    for (const index of this.#bitmap.items()) yield this.itemAt(index);
  }

  snapshot(): RangeSnapshot {
    return this.#bitmap.snapshot();
  }

  /** Another text of the same ports is another range. */
  restore(snapshot: RangeSnapshot): AllocatorError | undefined {
    if (snapshot.range === this.spec) return this.#bitmap.restore(snapshot);
    return new AllocatorError('MismatchedRange', 'the provided port range does not match the current port range');
  }
}

export function portRangeOf(text: string, pick: Pick): PortRange | AllocatorError {
  const ports = parsePortInterval(text);
  return ports instanceof AllocatorError ? ports : new PortRange(ports, pick);
}

/** The range that the snapshot names, with what it says is taken. */
export function portRangeFromSnapshot(snapshot: RangeSnapshot, pick: Pick): PortRange | AllocatorError {
  const range = portRangeOf(snapshot.range, pick);
  if (range instanceof AllocatorError) return range;
  return range.restore(snapshot) ?? range;
}

export function portAlreadyAllocated(): AllocatorError {
  return new AllocatorError('AlreadyAllocated', 'provided port is already allocated');
}

function portNotInRange(spec: string): AllocatorError {
  return new AllocatorError(
    'NotInRange',
    `provided port is not in the valid range. The range of valid ports is ${spec}`,
  );
}
