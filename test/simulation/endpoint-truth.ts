import type { ProbeReply } from '../../lib/cluster/probe-reply.ts';
import type { EndpointSliceObject, EndpointsObject } from '../../lib/cluster/published-objects.ts';
import type { ObjectWrite, ServerReply } from '../support/object-server.ts';
import { endpointAddresses, isIPv6, sliceAddresses } from './control-plane.ts';
import { type ProbeResult, Probes, passOf, REMEMBERED_MS } from './probes.ts';
import type { Call, Process } from './process.ts';
import type { Server } from './servers.ts';
import type { Attributes, TableWrite } from './stand-in-table.ts';
import { addressesWithLease, leaseFieldIn } from './stored-items.ts';
import type { World } from './world.ts';

/** A pass takes up to 9 s, and the clock of a function is wrong by up to 2 s. */
const PASS_MS = 11_000;
/** The longest time from the last read of a registration to a write. */
const STALE_SPEC_MS = PASS_MS;
/** The largest difference between the clocks of two functions: one writes the end of a withdrawal, another reads it. */
export const SKEW_MS = 4_000;
export const LONGEST_WITHDRAWAL_MS = 20 * 60_000;
/**
 * The longest time after the end of a deregistration in which one of its writes can still mark the address as withdrawn: a write
 * can be 25 s late, and a repeated request 30 s more.
 */
const LATEST_MARK_MS = { ofOne: 26_000, ofRepeated: 60_000 } as const;
/** The longest time from the first answer of a pass to its last probe. */
const PROBES_MS = 4_000;
const SHUTDOWN_STATUS = 500;
export const FOREIGN = 'other-';

/** What people and the spec did to one address. A time of 0 means never. */
class AddressTruth {
  /** The time since which the spec or the DNS records of its host have the address. */
  expectedSinceMs: number | undefined;
  /** The time at which the address was removed from the spec and from the DNS records. */
  unexpectedSinceMs: number | undefined;
  /** The number of deregistrations that run. */
  running = 0;
  /** The times between which overlapping deregistrations may have an effect. */
  leavingSinceMs = 0;
  leavingUntilMs = 0;
  /** Another deregistration overlapped with the last one, or could still have an effect when the last one began. */
  isShared = false;
  /** The time until which a deregistration without an answer may mark the address. */
  unknownUntilMs = 0;
  /** The time until which a deregistration that was repeated or got no answer may mark the address. */
  markedUntilMs = 0;
  /** The end of the withdrawal that the answer of a deregistration stated. */
  withdrawnUntilMs = 0;
  /** A deregistration that began before this time may have been undone, so its answer is not checked. */
  mayReturnMs = 0;
  /** The last time at which a probe proved that the process of the server had ended. Its next start ends a withdrawal. */
  endedAtMs = Number.NEGATIVE_INFINITY;
  undoneAtMs: number | undefined;
  /** The last time at which another client published the address, for example its own API server at its start. */
  addedByOtherAtMs = Number.NEGATIVE_INFINITY;
}

/** Compares every change of the published addresses with what API servers and people really did. */
export class EndpointTruth {
  readonly #world: World;
  readonly #addresses = new Map<string, AddressTruth>();
  /** The call that is being carried out. */
  call: Call | undefined;
  readonly #probes: Probes;
  /** The addresses that each deregistration has withdrawn. */
  readonly #marked = new Set<string>();
  readonly #published = new Map<string, readonly string[]>();
  #restoredAtMs = Number.NEGATIVE_INFINITY;
  /** The time at which another client last removed all addresses of an object. */
  #emptiedAtMs = Number.NEGATIVE_INFINITY;

  constructor(world: World) {
    this.#world = world;
    this.#probes = new Probes(world);
  }

  get #now(): number {
    return this.#world.clock.nowMs;
  }

  #of(address: string): AddressTruth {
    const known = this.#addresses.get(address) ?? new AddressTruth();
    this.#addresses.set(address, known);
    return known;
  }

  /** Runs `work`, which carries out a call of a function in the cluster. */
  during<T>(call: Call, work: () => T): T {
    this.call = call;
    try {
      return work();
    } finally {
      this.call = undefined;
    }
  }

  probing(process: Process, address: string): void {
    this.#probes.begin(process, address);
  }

  probed(process: Process, address: string, result: ProbeResult): void {
    for (const each of this.#probes.add(process, address, result)) this.#ended(each);
  }

  /** Returns whether a probe at or after `sinceMs` proves that the server is down. */
  wasSeenDown(address: string, sinceMs: number): boolean {
    return this.#probes.wasSeenDown(address, sinceMs);
  }

  expect(addresses: readonly string[]): void {
    for (const [address, known] of this.#addresses) {
      if (known.expectedSinceMs === undefined || addresses.includes(address)) continue;
      known.expectedSinceMs = undefined;
      known.unexpectedSinceMs = this.#now;
    }
    for (const address of addresses) {
      const known = this.#of(address);
      known.expectedSinceMs ??= this.#now;
      known.unexpectedSinceMs = undefined;
    }
  }

  /** Records the start of a deregistration. */
  leaves(address: string): void {
    const known = this.#of(address);
    const isOther = known.running > 0 || known.unknownUntilMs > this.#now;
    known.isShared = isOther || this.#world.table.isMarked(address, this.#now - SKEW_MS);
    if (!known.isShared) known.leavingSinceMs = this.#now;
    known.running++;
  }

  /** Returns whether no other deregistration overlaps with the one that began at this time, or may still have an effect. */
  isAlone(address: string, sinceMs: number): boolean {
    const { isShared, leavingSinceMs } = this.#of(address);
    return !isShared && leavingSinceMs === sinceMs;
  }

  /**
   * Records the end of a deregistration, which can have an effect until `untilMs`. If the deregistration was repeated or got no
   * answer, one of its writes can still mark the address.
   */
  left(address: string, untilMs: number, { isAnswered = true, isRepeated = false } = {}): void {
    const known = this.#of(address);
    if (!isAnswered) known.unknownUntilMs = this.#now + LATEST_MARK_MS[isRepeated ? 'ofRepeated' : 'ofOne'];
    if (!isAnswered || isRepeated) known.markedUntilMs = this.#now + LATEST_MARK_MS.ofRepeated;
    known.running--;
    known.leavingUntilMs = Math.max(untilMs, known.leavingUntilMs);
  }

  /**
   * Records the answer of a deregistration that began at `askedAtMs`: the address is withdrawn until `untilMs`. The answer is
   * ignored if a probe proved since that the server had ended. A pass that probed it just before may count that.
   */
  withdrawn(address: string, askedAtMs: number, untilMs: number): void {
    const known = this.#of(address);
    if (known.mayReturnMs >= askedAtMs) return;
    if (known.endedAtMs >= known.leavingSinceMs - PASS_MS) return;
    known.withdrawnUntilMs = Math.max(untilMs - SKEW_MS, known.withdrawnUntilMs);
    if (this.published().includes(address) && known.addedByOtherAtMs < askedAtMs) {
      this.#world.violate('toldWithdrawn', `a deregistration answered that ${address} is not published, and it is`);
    }
  }

  /** Records that the next answer of the server ends its withdrawal. */
  #ended(address: string): void {
    const known = this.#of(address);
    known.endedAtMs = this.#now;
    known.withdrawnUntilMs = 0;
  }

  /** Records that the address may be published again: its withdrawal was undone or lost. */
  mayReturn(address: string, untilMs = this.#now): void {
    const known = this.#of(address);
    known.withdrawnUntilMs = 0;
    known.mayReturnMs = Math.max(untilMs, known.mayReturnMs);
  }

  /** Records that no withdrawal applies to the address any more, although an invocation may still mark it. */
  returned(address: string): void {
    const known = this.#of(address);
    known.undoneAtMs = this.#now;
    known.withdrawnUntilMs = 0;
    if (known.markedUntilMs <= this.#now && known.running === 0) known.leavingUntilMs = this.#now;
  }

  isExpected(address: string): boolean {
    return this.#of(address).expectedSinceMs !== undefined;
  }

  publishedIn(kind: string, name: string): readonly string[] {
    return this.#published.get(`${kind}/${name}`) ?? [];
  }

  published(): readonly string[] {
    return [...this.#published.values()].flat();
  }

  publishedOf(family: 'IPv4' | 'IPv6'): (readonly string[])[] {
    const names =
      family === 'IPv4' ? ['endpoints/kubernetes', 'endpointslices/kubernetes'] : ['endpointslices/kubernetes-ipv6'];
    return names.map((name) => this.#published.get(name) ?? []);
  }

  isWithdrawn(address: string): boolean {
    return this.#of(address).withdrawnUntilMs > this.#now;
  }

  mayBeWithdrawn(address: string): boolean {
    return this.#of(address).leavingUntilMs > this.#now;
  }

  /** Records that the table was replaced by an old copy, which may contain withdrawals that were undone or refused since. */
  restored(): void {
    this.#restoredAtMs = this.#now;
    for (const known of this.#addresses.values()) {
      if (known.leavingUntilMs > 0) known.leavingUntilMs = this.#now + LONGEST_WITHDRAWAL_MS;
    }
  }

  /**
   * Checks each write of the leases by a deregistration. No deregistration in the simulation is allowed to withdraw the last
   * address of a family, or to withdraw an address again after its withdrawal was undone.
   */
  checkMarked({ before, after, by }: TableWrite): void {
    const isMarked = (leases: Attributes | undefined, address: string) =>
      leaseFieldIn(leases, address, 'withdrawnUntilMs') > this.#now;
    for (const address of addressesWithLease(after)) {
      if (isMarked(before, address) || !isMarked(after, address)) continue;
      const mark = `${passOf(by)} ${address}`;
      if (this.#marked.has(mark)) this.#world.violate('undone', `${by.name} withdrew ${address} again after an undo`);
      this.#marked.add(mark);
    }
    for (const isOf of [isIPv6, (address: string) => !isIPv6(address)]) {
      const stayingIn = (leases: Attributes | undefined, untilMs: number) =>
        addressesWithLease(leases).filter(
          (address) => isOf(address) && leaseFieldIn(leases, address, 'withdrawnUntilMs') <= untilMs,
        );
      // A withdrawal that is about to end may be repeated.
      const stayed = stayingIn(before, this.#now);
      if (stayed.length > 0 && stayingIn(after, this.#now + SKEW_MS).length === 0) {
        this.#world.violate('lastLive', `a deregistration withdrew ${stayed.join(' ')}, the last one`);
      }
    }
  }

  check({ kind, name, before: replaced }: ObjectWrite): void {
    const { plane } = this.#world.servers;
    if (name.startsWith(FOREIGN))
      return void this.#checkForeign(name, (replaced as EndpointSliceObject | undefined)?.addressType);
    const now =
      kind === 'endpointslices'
        ? sliceAddresses(plane.find<EndpointSliceObject>(kind, 'default', name))
        : endpointAddresses(plane.find<EndpointsObject>(kind, 'default', name));
    const before = this.#published.get(`${kind}/${name}`) ?? [];
    this.#published.set(`${kind}/${name}`, now);
    if (this.call !== undefined) {
      if (now.join() !== before.join()) this.#checkChange(kind, before, now, this.call);
      return;
    }
    if (now.length === 0) this.#emptiedAtMs = this.#now;
    for (const added of now) if (!before.includes(added)) this.#of(added).addedByOtherAtMs = this.#now;
  }

  #checkChange(kind: string, before: readonly string[], now: readonly string[], call: Call): void {
    const { by, sentAtMs } = call;
    this.#world.note(`${by.name} published ${now.join(' ')} in ${kind}, sent at ${this.#world.timeOf(sentAtMs)}`);
    if (this.#world.cluster.isPausedFor(call) && by.kind === 'endpoints') {
      this.#world.violate('paused', `${by.name} wrote ${kind} although passes are paused`);
    }
    this.#world.cluster.checkMayWrite(by, call.begunAtMs, kind);
    if (now.length === 0) this.#world.violate('empty', `${kind} have no address`);
    for (const address of before) if (!now.includes(address)) this.#checkRemoved(address, call);
    for (const address of now) if (!before.includes(address)) this.#checkAdded(address, kind, now, call);
  }

  /** Checks that another client's slice is deleted only if the spec allows it, and that its family keeps an address. */
  #checkForeign(name: string, type: string | undefined): void {
    const { plane } = this.#world.servers;
    if (this.call === undefined || plane.find('endpointslices', 'default', name) !== undefined) return;
    const left = plane
      .slices()
      .filter(({ addressType }) => addressType === type)
      .flatMap(sliceAddresses);
    if (!this.#world.has('prune')) this.#world.violate('pruned', `${name} is another client's, and was deleted`);
    // Another client deleted the other slices after the pass had read them.
    if (this.#emptiedAtMs > this.call.begunAtMs) return;
    if (left.length === 0) this.#world.violate('empty', `${name} was deleted, and no slice has an address`);
  }

  #checkRemoved(address: string, { sentAtMs, by, begunAtMs }: Call): void {
    const { servers } = this.#world;
    const { agents } = this.#world.cluster;
    const known = this.#of(address);
    const isLeaving = known.running > 0 || known.leavingUntilMs >= sentAtMs - PASS_MS;
    if (isLeaving || (known.expectedSinceMs ?? sentAtMs) > sentAtMs - 3 * PASS_MS) return;
    const misses = this.#probes.missesOf(address, sentAtMs);
    const saidShutdown = misses.some(({ status }) => status === SHUTDOWN_STATUS);
    // A late write belongs to an earlier pass of the process.
    const isOwnWrite = begunAtMs === by.invokedAtMs;
    const own = this.#probes.answersIn(address, isOwnWrite ? passOf(by) : '');
    const hasAnswered = own.isAlive && !agents.has(address);
    // A pass that did not probe the address decides by the table, which may lack an answer that another pass failed to write.
    const mayKnow = own.wasProbed || this.#world.table.leaseField(address, 'misses') < 2;
    if (hasAnswered || (mayKnow && servers.wasGoodSince(address, sentAtMs - PASS_MS))) {
      this.#world.violate('removed', `${address} answers, was not withdrawn, and was removed`);
    } else if (this.#isUnansweredSinceUndo(address)) {
      // Another writer published the address before the server answered.
      return;
    } else if (!saidShutdown && !this.#probes.areTwo(misses) && sentAtMs > this.#restoredAtMs + REMEMBERED_MS) {
      const tries = this.#probes.of(address);
      const shown = tries.map(({ atMs, status }) => `${this.#world.timeOf(atMs)} ${status ?? 'silence'}`).join(', ');
      const message = `${address} was removed, and ${misses.length} probes prove that it is down, of ${shown}`;
      this.#world.violate('oneMiss', message);
    } else if (!saidShutdown && !agents.has(address) && this.#isEarly(misses, address, begunAtMs)) {
      this.#world.violate(
        'oneMiss',
        `${address} was removed, and no probe since its lease ended proves that it is down`,
      );
    }
  }

  /** Returns whether no answer since the undo is in the table, because none came, or because no pass could write it. */
  #isUnansweredSinceUndo(address: string): boolean {
    const { undoneAtMs } = this.#of(address);
    const isUnwritten = this.#world.table.leaseField(address, 'withdrawnUntilMs') > 0;
    return undoneAtMs !== undefined && (isUnwritten || !this.#probes.hasAnswered(address, undoneAtMs));
  }

  /** Returns whether all misses are from before the end of the lease that the pass has read. */
  #isEarly(misses: readonly { readonly atMs: number }[], address: string, begunAtMs: number): boolean {
    const endMs = this.#world.table.leaseField(address, 'expiresAtMs');
    const wasRead = endMs - 1000 * this.#world.cluster.spec.endpoints.leaseSeconds < begunAtMs - SKEW_MS;
    return wasRead && misses.every(({ atMs }) => atMs < endMs - PROBES_MS - SKEW_MS);
  }

  #checkAdded(address: string, kind: string, now: readonly string[], { sentAtMs, by }: Call): void {
    const { calmSinceMs, servers } = this.#world;
    const { agents } = this.#world.cluster;
    if (this.isWithdrawn(address)) this.#world.violate('withdrawn', `${address} is withdrawn and was published`);
    // Only ticks are checked: a deregistration publishes the addresses that the leases contain, and the next tick removes those
    // that are wrong.
    const isTick = by.kind === 'endpoints';
    const { undoneAtMs = 0, unexpectedSinceMs } = this.#of(address);
    const isUndone = undoneAtMs > Math.max(sentAtMs - REMEMBERED_MS, this.#restoredAtMs) && undoneAtMs < sentAtMs;
    // The lease of an agent counts until it expires.
    const leaseMs = agents.has(address) ? 1000 * this.#world.cluster.spec.endpoints.leaseSeconds : 0;
    const hasAnswered = this.#probes.hasAnswered(address, undoneAtMs - PASS_MS - leaseMs);
    // A slice mirrors the Endpoints.
    const isMirrored = kind === 'endpointslices' && this.publishedIn('endpoints', 'kubernetes').includes(address);
    if (isTick && isUndone && !isMirrored && !hasAnswered) {
      this.#world.violate('withdrawn', `${address} was published after an undo, and has not answered since`);
    }
    // An agent may have refreshed the lease just before the address was removed from the spec.
    const isAgents = agents.has(address);
    // After a failed DNS lookup, the address of the former record stays while it answers.
    const isFormerRecord = sentAtMs < calmSinceMs + PASS_MS && servers.formerRecords.has(address);
    // An address stays until its lease expires if no other address of its family is expected.
    const isLeased = this.#world.table.leaseField(address, 'expiresAtMs') > sentAtMs;
    if (isLeased && !now.some((each) => this.isExpected(each))) return;
    if (
      isTick &&
      !isMirrored &&
      !isAgents &&
      !isFormerRecord &&
      (unexpectedSinceMs ?? sentAtMs) < sentAtMs - STALE_SPEC_MS
    ) {
      this.#world.violate('notInSpec', `${address} is not in the spec and was published`);
    }
  }
}

/** Returns the result of a probe by the agent on the server's own host. */
export function probeReplyOf({ state }: Server, { status, body }: ServerReply): ProbeReply {
  if (state === 'down' || state === 'silent') return { kind: 'silence', message: 'connect ECONNREFUSED' };
  return { kind: 'status', status, body: String(body) };
}
