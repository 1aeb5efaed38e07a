import type { ProbeReply } from '../../lib/endpoints/probe-outcome.ts';
import {
  type EndpointSlice,
  type Endpoints,
  endpointAddresses,
  type HttpReply,
  isIPv6,
  type ObjectWrite,
  sliceAddresses,
} from './control-plane.ts';
import type { Process } from './process.ts';
import type { Server } from './servers.ts';
import type { Attributes, TableWrite } from './stand-in-table.ts';
import { addressesWithLease, leaseFieldIn } from './stored-items.ts';
import type { World } from './world.ts';

interface Probe {
  readonly atMs: number;
  readonly pass: string;
  readonly address: string;
  /** Absent: silence. */
  readonly status: number | undefined;
}

interface ProbeResult {
  readonly status: number | undefined;
  readonly isLate?: boolean;
}

/** The call that writes now. */
interface Call {
  readonly process: Process;
  readonly sentAtMs: number;
  /** The invocation had read by then that passes are paused. */
  readonly sawPause: boolean;
  /** When the invocation began. */
  readonly begunAtMs: number;
}

/** A pass takes 9 s, and the clocks of functions differ by 2 s. */
const PASS_MS = 11_000;
/** Half an interval, by two clocks. */
const BETWEEN_MISSES_MS = { skewed: 800, correct: 3_000 } as const;
/** Three intervals, and a pass. Where tries are rarer, a miss counts as long as it is among the last ones. */
const EVIDENCE_MS = 45_000;
const LAST_TRIES = 12;
/** The rarest are a minute apart, a function may be late, and three in a row count. */
const REMEMBERED_MS = 225_000;
/** The longest from the last read of a registration to a write. */
const STALE_SPEC_MS = PASS_MS;
/** The end of a withdrawal is by the clock of one function and read by that of another. */
export const SKEW_MS = 4_000;
export const LONGEST_WITHDRAWAL_MS = 20 * 60_000;
/** A write arrives 25 s later, and a request that was repeated may still run for 30 s. */
const LATEST_MARK_MS = { ofOne: 26_000, ofRepeated: 60_000 } as const;
/** From the first answer of a pass to its last probe. */
const PROBES_MS = 4_000;
const SHUTDOWN_STATUS = 500;
/** Begins the names of slices that another client makes. */
export const FOREIGN = 'other-';
const ALIVE = new Set([200, 401, 403, 429]);

/** Holds every change of the published addresses against what API servers and people really did. */
export class EndpointTruth {
  readonly #world: World;
  #call: Call | undefined;
  #probes: Probe[] = [];
  /** Of the Endpoints, and of the slices of the functions. */
  readonly #published = new Map<string, readonly string[]>();
  #restoredAtMs = Number.NEGATIVE_INFINITY;
  /** When another client last removed all addresses of an object. */
  #emptiedAtMs = Number.NEGATIVE_INFINITY;
  /** When a deregistration of each was undone. */
  readonly #undoneAtMs = new Map<string, number>();
  /** Until when each is out, as a deregistration answered. */
  readonly #withdrawnUntilMs = new Map<string, number>();
  /** How many deregistrations of each are under way. */
  readonly #leaving = new Map<string, number>();
  /** A deregistration that began before this time may have been undone: its answer is not checked. */
  readonly #mayReturnMs = new Map<string, number>();
  /** Since when deregistrations that overlap may have had an effect. */
  readonly #leavingSinceMs = new Map<string, number>();
  #begun = 0;
  /** The number of the only deregistration that may have an effect. */
  readonly #alone = new Map<string, number>();
  /** Until when one without an answer may mark the address. */
  readonly #unknownUntilMs = new Map<string, number>();
  /** Until when one without an answer, or a repeated one, may. */
  readonly #markedUntilMs = new Map<string, number>();
  /** Until when deregistrations may have an effect. */
  readonly #leavingUntilMs = new Map<string, number>();
  /** Addresses of the spec and its names, and when they were removed from both. */
  readonly #notExpectedSinceMs = new Map<string, number>();
  #expected: ReadonlySet<string> = new Set();
  readonly #unexpectedUntilMs = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Runs what a call of a function does in the cluster. */
  during<T>(call: Call, work: () => T): T {
    this.#call = call;
    try {
      return work();
    } finally {
      this.#call = undefined;
    }
  }

  /** @param isLate the process stood still meanwhile, and its silence says nothing of the server */
  probed(process: Process, address: string, { status, isLate = false }: ProbeResult): void {
    const { clock, servers } = this.#world;
    if (status === undefined ? !isLate : !ALIVE.has(status)) servers.notice(address);
    // Others probe only to find a server that answers them.
    if (process.kind !== 'endpoints' && process.kind !== 'agent') return;
    this.#probes = this.#probes.filter(({ atMs }) => atMs > clock.nowMs - REMEMBERED_MS);
    this.#probes.push({ atMs: clock.nowMs, pass: passOf(process), address, status });
  }

  /** The spec, or the records of its name, have these addresses now. */
  expect(addresses: readonly string[]): void {
    const { nowMs } = this.#world.clock;
    const now = new Set(addresses);
    for (const address of this.#expected) if (!now.has(address)) this.#notExpectedSinceMs.set(address, nowMs);
    for (const address of now) {
      if (!this.#expected.has(address)) this.#unexpectedUntilMs.set(address, nowMs);
      this.#notExpectedSinceMs.delete(address);
    }
    this.#expected = now;
  }

  /** A deregistration is under way. @returns its number */
  leaves(address: string): number {
    const { clock } = this.#world;
    const isUnknown = (this.#unknownUntilMs.get(address) ?? 0) > clock.nowMs;
    const isOther = (this.#leaving.get(address) ?? 0) > 0 || isUnknown;
    const isFirst = !isOther && !this.#world.isMarked(address, clock.nowMs - SKEW_MS);
    if (isFirst) this.#leavingSinceMs.set(address, clock.nowMs);
    this.#leaving.set(address, (this.#leaving.get(address) ?? 0) + 1);
    this.#begun++;
    if (isFirst) this.#alone.set(address, this.#begun);
    else this.#alone.delete(address);
    return this.#begun;
  }

  /** Whether no other deregistration of the address was under way with this one, or may still have an effect. */
  isAlone(address: string, number: number): boolean {
    return this.#alone.get(address) === number;
  }

  /** It has ended, and may have an effect until then. Without an answer, or repeated, it may still mark the address. */
  left(address: string, untilMs: number, unknown?: keyof typeof LATEST_MARK_MS, isRepeated = false): void {
    const { nowMs } = this.#world.clock;
    if (unknown) this.#unknownUntilMs.set(address, nowMs + LATEST_MARK_MS[unknown]);
    if (unknown || isRepeated) this.#markedUntilMs.set(address, nowMs + LATEST_MARK_MS.ofRepeated);
    this.#leaving.set(address, (this.#leaving.get(address) ?? 1) - 1);
    this.#leavingUntilMs.set(address, Math.max(untilMs, this.#leavingUntilMs.get(address) ?? 0));
  }

  /**
   * A deregistration, begun then, answered that the address is not published until then. A later one does not make the first
   * forget that the server was down since.
   */
  withdrawn(address: string, askedAtMs: number, untilMs: number): void {
    const { servers } = this.#world;
    if ((this.#mayReturnMs.get(address) ?? 0) >= askedAtMs) return;
    if (!servers.wasGoodSince(address, this.#leavingSinceMs.get(address) ?? 0)) return;
    this.#withdrawnUntilMs.set(address, Math.max(untilMs - SKEW_MS, this.#withdrawnUntilMs.get(address) ?? 0));
    if (this.published().includes(address)) {
      this.#world.violate('toldWithdrawn', `a deregistration answered that ${address} is not published, and it is`);
    }
  }

  /** It is undone, the table forgot it, or the server went down: when it answers again it is published. */
  mayReturn(address: string, untilMs = this.#world.clock.nowMs): void {
    this.#withdrawnUntilMs.delete(address);
    this.#mayReturnMs.set(address, Math.max(untilMs, this.#mayReturnMs.get(address) ?? 0));
  }

  /** No withdrawal keeps it out any more, unless an invocation may still mark it. */
  returned(address: string): void {
    this.#undoneAtMs.set(address, this.#world.clock.nowMs);
    const isMarkedLater = (this.#markedUntilMs.get(address) ?? 0) > this.#world.clock.nowMs;
    if (isMarkedLater || (this.#leaving.get(address) ?? 0) > 0) return;
    this.#withdrawnUntilMs.delete(address);
    this.#leavingUntilMs.set(address, this.#world.clock.nowMs);
  }

  isExpected(address: string): boolean {
    return this.#expected.has(address);
  }

  publishedIn(kind: string, name: string): readonly string[] {
    return this.#published.get(`${kind}/${name}`) ?? [];
  }

  published(): readonly string[] {
    return [...this.#published.values()].flat();
  }

  /** What each of the objects has that publish addresses of the family. */
  publishedOf(family: 'IPv4' | 'IPv6'): (readonly string[])[] {
    const names =
      family === 'IPv4' ? ['endpoints/kubernetes', 'endpointslices/kubernetes'] : ['endpointslices/kubernetes-ipv6'];
    return names.map((name) => this.#published.get(name) ?? []);
  }

  isWithdrawn(address: string): boolean {
    return (this.#withdrawnUntilMs.get(address) ?? 0) > this.#world.clock.nowMs;
  }

  /** Some deregistration may still have an effect. */
  mayBeWithdrawn(address: string): boolean {
    return (this.#leavingUntilMs.get(address) ?? 0) > this.#world.clock.nowMs;
  }

  /** The table is an old one: what was undone, or refused, may be there again. */
  restored(): void {
    this.#restoredAtMs = this.#world.clock.nowMs;
    for (const address of this.#leavingUntilMs.keys()) {
      this.#leavingUntilMs.set(address, this.#world.clock.nowMs + LONGEST_WITHDRAWAL_MS);
    }
  }

  /** Called after each write of the leases by a deregistration. None of this world may withdraw the last address of a family. */
  checkMarked({ before, after }: TableWrite): void {
    for (const isOf of [isIPv6, (address: string) => !isIPv6(address)]) {
      const stayingIn = (leases: Attributes | undefined) =>
        addressesWithLease(leases).filter(
          (address) =>
            isOf(address) && leaseFieldIn(leases, address, 'withdrawnUntilMs') <= this.#world.clock.nowMs + SKEW_MS,
        );
      if (stayingIn(before).length > 0 && stayingIn(after).length === 0) {
        this.#world.violate('lastLive', `a deregistration withdrew ${stayingIn(before).join(' ')}, the last one`);
      }
    }
  }

  /** Called after each write of Endpoints and slices. */
  check({ kind, name }: ObjectWrite): void {
    const { plane } = this.#world.servers;
    if (name.startsWith(FOREIGN)) return void this.#checkForeign(name);
    const now =
      kind === 'endpointslices'
        ? sliceAddresses(plane.find<EndpointSlice>(kind, 'default', name))
        : endpointAddresses(plane.find<Endpoints>(kind, 'default', name));
    const before = this.#published.get(`${kind}/${name}`) ?? [];
    this.#published.set(`${kind}/${name}`, now);
    if (this.#call === undefined && now.length === 0) this.#emptiedAtMs = this.#world.clock.nowMs;
    if (this.#call !== undefined && now.join() !== before.join()) this.#checkChange(kind, before, now, this.#call);
  }

  #checkChange(kind: string, before: readonly string[], now: readonly string[], call: Call): void {
    const { process, sentAtMs } = call;
    this.#world.note(`${process.name} published ${now.join(' ')} in ${kind}, sent at ${this.#world.timeOf(sentAtMs)}`);
    if (this.#world.isPausedFor(call) && process.kind === 'endpoints') {
      this.#world.violate('paused', `${process.name} wrote ${kind} although passes are paused`);
    }
    this.#world.checkMayWrite(process, call.begunAtMs, kind);
    if (now.length === 0) this.#world.violate('empty', `${kind} have no address`);
    for (const address of before) if (!now.includes(address)) this.#checkRemoved(address, call);
    for (const address of now) if (!before.includes(address)) this.#checkAdded(address, kind, now, call);
  }

  /** Another client's slice is deleted only where the spec allows it, and never the last address of its family. */
  #checkForeign(name: string): void {
    const { plane } = this.#world.servers;
    if (this.#call === undefined || plane.find('endpointslices', 'default', name) !== undefined) return;
    const left = plane
      .slices()
      .filter(({ addressType }) => addressType === 'IPv4')
      .flatMap(sliceAddresses);
    if (!this.#world.has('prune')) this.#world.violate('pruned', `${name} is another client's, and was deleted`);
    // Another client deleted the other slices after the pass had read them.
    if (this.#emptiedAtMs > this.#call.begunAtMs) return;
    if (left.length === 0) this.#world.violate('empty', `${name} was deleted, and no slice has an address`);
  }

  #checkRemoved(address: string, { sentAtMs, process, begunAtMs }: Call): void {
    const { servers, agents } = this.#world;
    const isLeaving =
      (this.#leaving.get(address) ?? 0) > 0 || (this.#leavingUntilMs.get(address) ?? 0) >= sentAtMs - PASS_MS;
    if (isLeaving || this.#wasUnexpected(address, sentAtMs - 3 * PASS_MS)) return;
    const tries = this.#probes.filter((probe) => probe.address === address);
    const isLate = (probe: Probe) => probe.atMs > sentAtMs - EVIDENCE_MS;
    // A pass whose process was late tries twice.
    const lastPasses = [...new Set(tries.map(({ pass }) => pass))].slice(-LAST_TRIES);
    const misses = tries.filter(
      (probe) => (isLate(probe) || lastPasses.includes(probe.pass)) && this.#provesMiss(probe),
    );
    const saidShutdown = misses.some(({ status }) => status === SHUTDOWN_STATUS);
    // A late write belongs to an earlier pass of the process.
    const isOwnWrite = begunAtMs === process.invokedAtMs;
    const own = tries.filter(({ pass }) => isOwnWrite && pass === passOf(process));
    const isAlive = ({ status }: Probe) => status !== undefined && ALIVE.has(status);
    const hasAnswered = own.length > 0 && own.every(isAlive) && !agents.has(address);
    // A pass that did not probe it does not know an answer that another pass could not write.
    const mayKnow = own.length > 0 || this.#world.leaseField(address, 'misses') < 2;
    if (hasAnswered || (mayKnow && servers.wasGoodSince(address, sentAtMs - PASS_MS))) {
      this.#world.violate('removed', `${address} answers, was not withdrawn, and was removed`);
    } else if (this.#isUnansweredSinceUndo(address, tries)) {
      // Another writer published it before it answered.
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
    const undoneAtMs = this.#undoneAtMs.get(address);
    if (undoneAtMs === undefined) return false;
    return !tries.some(({ atMs, status = 0 }) => atMs >= undoneAtMs && ALIVE.has(status));
  }

  /** Whether all misses are of the time before the end of the lease that the pass has read. */
  #isEarly(misses: readonly Probe[], address: string, begunAtMs: number): boolean {
    const endMs = this.#world.leaseField(address, 'expiresAtMs');
    const wasRead = endMs - 1000 * this.#world.spec.endpoints.leaseSeconds < begunAtMs - SKEW_MS;
    return wasRead && misses.every(({ atMs }) => atMs < endMs - PROBES_MS - SKEW_MS);
  }

  #checkAdded(address: string, kind: string, now: readonly string[], { sentAtMs, process }: Call): void {
    if (this.isWithdrawn(address)) this.#world.violate('withdrawn', `${address} is withdrawn and was published`);
    // A deregistration keeps what the leases have: the next tick removes it.
    const isTick = process.kind === 'endpoints';
    const undoneAtMs = this.#undoneAtMs.get(address) ?? 0;
    const isUndone = undoneAtMs > Math.max(sentAtMs - REMEMBERED_MS, this.#restoredAtMs) && undoneAtMs < sentAtMs;
    // The lease of an agent counts until it expires.
    const leaseMs = this.#world.agents.has(address) ? 1000 * this.#world.spec.endpoints.leaseSeconds : 0;
    const isAnswer = ({ atMs, status = 0 }: Probe) => atMs >= undoneAtMs - PASS_MS - leaseMs && ALIVE.has(status);
    // A slice mirrors what the Endpoints have.
    const isMirrored = kind === 'endpointslices' && this.publishedIn('endpoints', 'kubernetes').includes(address);
    if (
      isTick &&
      isUndone &&
      !isMirrored &&
      !this.#probes.some((probe) => probe.address === address && isAnswer(probe))
    ) {
      this.#world.violate('withdrawn', `${address} was published after an undo, and has not answered since`);
    }
    const goneSinceMs = this.#notExpectedSinceMs.get(address);
    // An agent may have renewed its lease right before.
    const isAgents = this.#world.agents.has(address);
    // A look-up that fails says nothing: the former record stays, if it answers.
    const { calmSinceMs, servers } = this.#world;
    const isFormerRecord = sentAtMs < calmSinceMs + PASS_MS && servers.formerRecords.has(address);
    // Without another of its family, an address stays until its lease expires.
    const isLeased = this.#world.leaseField(address, 'expiresAtMs') > sentAtMs;
    if (isLeased && !now.some((each) => this.isExpected(each))) return;
    if (isTick && !isAgents && !isFormerRecord && goneSinceMs !== undefined && goneSinceMs < sentAtMs - STALE_SPEC_MS) {
      this.#world.violate('notInSpec', `${address} is not in the spec and was published`);
    }
  }

  /** Silence may be the network's, unless another address answered the same pass, or agents know better. */
  #provesMiss({ status, pass, address }: Probe): boolean {
    if (status !== undefined) return !ALIVE.has(status);
    if (this.#world.agents.has(address)) return true;
    // Each family has network paths of its own.
    return this.#probes.some(
      (probe) => probe.pass === pass && probe.status !== undefined && isIPv6(probe.address) === isIPv6(address),
    );
  }

  #areTwo(misses: readonly Probe[]): boolean {
    const times = misses.map(({ atMs }) => atMs);
    const isSkewed = this.#world.has('skewedFunctions') || this.#world.has('skewedMachines');
    return Math.max(...times) - Math.min(...times) >= BETWEEN_MISSES_MS[isSkewed ? 'skewed' : 'correct'];
  }

  #wasUnexpected(address: string, sinceMs: number): boolean {
    return !this.#expected.has(address) || (this.#unexpectedUntilMs.get(address) ?? 0) > sinceMs;
  }
}

function passOf({ name, invocation }: Process): string {
  return `${name}/${invocation}`;
}

/** What an agent on the server's own host finds. */
export function probeReplyOf({ state }: Server, { status, body }: HttpReply): ProbeReply {
  if (state === 'down' || state === 'silent') return { kind: 'silence', message: 'connect ECONNREFUSED' };
  return { kind: 'status', status, body: String(body) };
}
