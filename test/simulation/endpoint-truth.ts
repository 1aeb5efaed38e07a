import type { ProbeReply } from '../../lib/cluster/probe-reply.ts';
import type { EndpointSliceObject, EndpointsObject } from '../../lib/cluster/published-objects.ts';
import type { ObjectWrite, ServerReply } from '../support/object-server.ts';
import { endpointAddresses, isIPv6, sliceAddresses } from './control-plane.ts';
import type { Call, Process } from './process.ts';
import type { Server } from './servers.ts';
import type { Attributes, TableWrite } from './stand-in-table.ts';
import { addressesWithLease, leaseFieldIn } from './stored-items.ts';
import type { World } from './world.ts';

interface Probe {
  readonly atMs: number;
  readonly pass: string;
  readonly isOfAgent: boolean;
  readonly address: string;
  readonly status: number | undefined;
}

interface ProbeResult {
  readonly status: number | undefined;
  readonly isLate?: boolean;
}

/** A pass takes up to 9 s, and the clock of a function is wrong by up to 2 s. */
const PASS_MS = 11_000;
/** The shortest time between two misses that count: half an interval, less where clocks are wrong. */
const BETWEEN_MISSES_MS = { skewed: 800, correct: 3_000 } as const;
/**
 * A miss counts for three intervals and the duration of one pass. It also counts if it is one of the results of the last passes
 * that probed the address.
 */
const EVIDENCE_MS = 45_000;
const LAST_TRIES = 12;
/**
 * The time for which probes are remembered. It covers three consecutive misses of an address that is probed only once a minute,
 * possibly late.
 */
const REMEMBERED_MS = 225_000;
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
const ALIVE = new Set([200, 401, 403, 429]);

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
  #probes: Probe[] = [];
  readonly #probesOf = new Map<string, Probe[]>();
  /** The addresses that each pass probes. */
  readonly #probed = new Map<string, string[]>();
  /** The addresses that each deregistration has withdrawn. */
  readonly #marked = new Set<string>();
  readonly #published = new Map<string, readonly string[]>();
  #restoredAtMs = Number.NEGATIVE_INFINITY;
  /** The time at which another client last removed all addresses of an object. */
  #emptiedAtMs = Number.NEGATIVE_INFINITY;

  constructor(world: World) {
    this.#world = world;
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

  /** Records that a pass begins to probe an address. */
  probing(process: Process, address: string): void {
    const pass = passOf(process);
    this.#probed.set(pass, [...(this.#probed.get(pass) ?? []), address]);
  }

  /** Records a probe. @param isLate the process was blocked during the probe, so silence does not show that the server is down */
  probed(process: Process, address: string, { status, isLate = false }: ProbeResult): void {
    if (status === undefined ? !isLate : !ALIVE.has(status)) this.#world.servers.notice(address);
    // Other processes probe only to find a server that answers.
    if (process.kind !== 'endpoints' && process.kind !== 'agent') return;
    while ((this.#probes[0]?.atMs ?? this.#now) <= this.#now - REMEMBERED_MS) this.#probes.shift();
    const pass = passOf(process);
    const probe: Probe = { atMs: this.#now, pass, isOfAgent: process.kind === 'agent', address, status };
    const ofPass = [...this.#ofPass(pass), probe];
    this.#probes.push(probe);
    this.#probesOf.set(pass, ofPass);
    for (const each of ofPass) if (this.#provesEnd(each)) this.#ended(each.address);
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

  /** Returns whether a probe at or after `sinceMs` proves that the server is down. */
  wasSeenDown(address: string, sinceMs: number): boolean {
    return this.#probes.some((probe) => probe.address === address && probe.atMs >= sinceMs && this.#provesMiss(probe));
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
    const tries = this.#probes.filter((probe) => probe.address === address);
    const isLate = (probe: Probe) => probe.atMs > sentAtMs - EVIDENCE_MS;
    // A pass whose process was late probes an address twice, so passes are counted here and not probes.
    const lastPasses = [...new Set(tries.map(({ pass }) => pass))].slice(-LAST_TRIES);
    const misses = tries.filter(
      (probe) => (isLate(probe) || lastPasses.includes(probe.pass)) && this.#provesMiss(probe),
    );
    const saidShutdown = misses.some(({ status }) => status === SHUTDOWN_STATUS);
    // A late write belongs to an earlier pass of the process.
    const isOwnWrite = begunAtMs === by.invokedAtMs;
    const own = tries.filter(({ pass }) => isOwnWrite && pass === passOf(by));
    const isAlive = ({ status }: Probe) => status !== undefined && ALIVE.has(status);
    const hasAnswered = own.length > 0 && own.every(isAlive) && !agents.has(address);
    // A pass that did not probe the address decides by the table, which may lack an answer that another pass failed to write.
    const mayKnow = own.length > 0 || this.#world.table.leaseField(address, 'misses') < 2;
    if (hasAnswered || (mayKnow && servers.wasGoodSince(address, sentAtMs - PASS_MS))) {
      this.#world.violate('removed', `${address} answers, was not withdrawn, and was removed`);
    } else if (this.#isUnansweredSinceUndo(address, tries)) {
      // Another writer published the address before the server answered.
      return;
    } else if (!saidShutdown && !this.#areTwo(misses) && sentAtMs > this.#restoredAtMs + REMEMBERED_MS) {
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

  #isUnansweredSinceUndo(address: string, tries: readonly Probe[]): boolean {
    const { undoneAtMs } = this.#of(address);
    if (undoneAtMs === undefined) return false;
    return !tries.some(({ atMs, status = 0 }) => atMs >= undoneAtMs && ALIVE.has(status));
  }

  /** Returns whether all misses are from before the end of the lease that the pass has read. */
  #isEarly(misses: readonly Probe[], address: string, begunAtMs: number): boolean {
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
    const isAnswer = ({ atMs, status = 0 }: Probe) => atMs >= undoneAtMs - PASS_MS - leaseMs && ALIVE.has(status);
    // A slice mirrors the Endpoints.
    const isMirrored = kind === 'endpointslices' && this.publishedIn('endpoints', 'kubernetes').includes(address);
    if (
      isTick &&
      isUndone &&
      !isMirrored &&
      !this.#probes.some((probe) => probe.address === address && isAnswer(probe))
    ) {
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

  /**
   * Returns whether a probe proves a miss. Silence proves a miss only if the address has an agent, or if another address of the
   * family answered in the same pass.
   */
  #provesMiss({ status, pass, address }: Probe): boolean {
    if (status !== undefined) return !ALIVE.has(status);
    if (this.#world.cluster.agents.has(address)) return true;
    // Each family has its own network paths.
    return this.#ofPass(pass).some((probe) => probe.status !== undefined && isIPv6(probe.address) === isIPv6(address));
  }

  /**
   * Returns whether a probe proves that the process of the server has ended. Silence proves it to the agent beside the server, to a
   * pass to which another address of the family answered, and to a pass that probes no other one.
   */
  #provesEnd({ status, pass, address, isOfAgent }: Probe): boolean {
    if (status !== undefined || isOfAgent) return status === undefined || !ALIVE.has(status);
    const isOfFamily = (other: string) => isIPv6(other) === isIPv6(address);
    if (this.#probed.get(pass)?.filter(isOfFamily).length === 1) return true;
    return this.#ofPass(pass).some((probe) => probe.status !== undefined && isOfFamily(probe.address));
  }

  #ofPass(pass: string): readonly Probe[] {
    return this.#probesOf.get(pass) ?? [];
  }

  #areTwo(misses: readonly Probe[]): boolean {
    const times = misses.map(({ atMs }) => atMs);
    const isSkewed = this.#world.has('skewedFunctions') || this.#world.has('skewedMachines');
    return Math.max(...times) - Math.min(...times) >= BETWEEN_MISSES_MS[isSkewed ? 'skewed' : 'correct'];
  }
}

function passOf({ name, invocation }: Process): string {
  return `${name}/${invocation}`;
}

/** Returns the result of a probe by the agent on the server's own host. */
export function probeReplyOf({ state }: Server, { status, body }: ServerReply): ProbeReply {
  if (state === 'down' || state === 'silent') return { kind: 'silence', message: 'connect ECONNREFUSED' };
  return { kind: 'status', status, body: String(body) };
}
