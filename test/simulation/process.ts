import type { Deadline } from '../../lib/runtime/deadline.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import type { Handler } from '../../lib/runtime/invocation.ts';
import type { Chance } from './clock.ts';
import { STACK } from './cluster.ts';
import type { Fault } from './settings.ts';
import type { World } from './world.ts';

export type Exchanged<Reply> =
  | { readonly outcome: 'reply'; readonly reply: Reply }
  /** The call was not carried out. */
  | { readonly outcome: 'refused'; readonly by: 'throttled' | 'serverError' }
  /** No answer came: the call was carried out, will be, or never will be. */
  | { readonly outcome: 'noReply' };

/** A call of an invocation, as the machine that carries it out sees it. */
export interface Call {
  readonly by: Process;
  /** The start of the invocation. */
  readonly begunAtMs: number;
  /** The time of the first attempt. */
  readonly sentAtMs: number;
  /** The invocation had read that passes are paused before it sent the call. */
  readonly sawPause: boolean;
  /** The invocation is a dry run or a lookup. */
  readonly isReading: boolean;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** The time after which the caller gives up by itself. */
  readonly timeoutMs?: number;
  /** The caller repeats a call that has just failed. */
  readonly isRepeated?: boolean;
  /** The key of the table item that the call changes. */
  readonly writes?: string | undefined;
}

const LATEST_MS = 25_000;
const LOSSY: readonly [Fault, ...Fault[]] = ['lostRequest', 'lostReply', 'lateRequest', 'throttled'];
const LOST_ONCE_IN = 3;
/** The faults of a process that loses its writes in this invocation, because its connection is half open. */
const LOST_WRITES: readonly [Fault, ...Fault[]] = ['lostRequest', 'lateRequest', 'lostReply'];
/** How often a process stands still after a call: after one of this many writes, and after one of this many reads. */
const HALTS_ONCE_IN = { write: 4, read: 40 };
const LONGEST_HALT_MS = 12_000;
/** Two of this many repeated calls have the same fault as the failed call. */
const AGAIN_TWICE_IN = 3;

export type ProcessKind =
  | 'endpoints'
  | 'repair'
  | 'portRepair'
  | 'deregister'
  | 'admission'
  | 'allocate'
  | 'agent'
  | 'desk';

/** A warm function, a command or an agent. It has its own clock and can end at any call. */
export class Process {
  isDead = false;
  invocation = 0;
  invokedAtMs = 0;
  /** The time for which a pass has blocked the process. */
  busyMs = 0;
  /** The number of the invocation in which the process last read that passes are paused. */
  sawPauseIn = -1;
  /** The invocation is a dry run or a lookup, which must not write. */
  isReading = false;
  /** The process runs an older version, which drops fields that it does not know. */
  readonly isOlder: boolean;
  /** The stack of the function. A function of another stack must not write. */
  stack = STACK;
  handler: Handler<unknown> | undefined;
  environment: Environment | undefined;
  readonly name: string;
  readonly kind: ProcessKind;
  readonly skewMs: number;
  readonly died: Promise<'died'>;
  readonly #world: World;
  readonly #chance: Chance;
  readonly #slowness: number;
  readonly #end: () => void;
  #lastFault: Fault | undefined;
  #frozenUntilMs = 0;
  #passes = 0;

  constructor(world: World, name: string, kind: ProcessKind, skewMs = 0) {
    const { promise, resolve } = Promise.withResolvers<'died'>();
    this.name = name;
    this.kind = kind;
    this.skewMs = skewMs;
    this.died = promise;
    this.#end = () => resolve('died');
    this.#world = world;
    this.#chance = world.chance.of(name);
    this.#slowness = world.has('slowNetwork') ? 20 : 1;
    this.isOlder = world.has('olderVersion') && world.chance.of(`version of ${name}`).once(2);
  }

  readonly nowMs = (): number => this.#world.clock.nowMs + this.skewMs;

  readonly newId = (): string => `${this.name}-${++this.#passes}`;

  readonly pick = (below: number): number => this.#chance.pick(below);

  /** Returns a call that is sent now. */
  call(): Call {
    const { invokedAtMs: begunAtMs, sawPauseIn, invocation, isReading } = this;
    const sentAtMs = this.#world.clock.nowMs;
    return { by: this, begunAtMs, sentAtMs, sawPause: sawPauseIn === invocation, isReading };
  }

  end(): void {
    this.isDead = true;
    this.#end();
  }

  freeze(ms: number): void {
    this.#frozenUntilMs = this.#world.clock.nowMs + ms;
  }

  readonly startDeadline = (ms: number): Deadline => this.#world.clock.startDeadline(ms, () => this.#frozenMs);

  get #frozenMs(): number {
    return this.isDead ? Number.POSITIVE_INFINITY : this.#frozenUntilMs - this.#world.clock.nowMs;
  }

  /**
   * Makes one call to another machine, which runs `work` in one step. The request and the reply each take time, and each can be
   * lost.
   */
  async exchange<Reply>(
    work: () => Reply,
    { signal, timeoutMs = 1_000, isRepeated = false, writes }: CallOptions = {},
  ): Promise<Exchanged<Reply>> {
    const { clock } = this.#world;
    if (this.kind === 'desk') return { outcome: 'reply', reply: work() };
    this.#checkAlive();
    if (this.#frozenMs > 0) await clock.wait(this.#frozenMs, signal);
    const fault = this.#fault(isRepeated, writes);
    this.#lastFault = fault;
    await clock.wait(this.#hopMs(fault), signal);
    this.#checkAlive();
    const noReply = async (): Promise<Exchanged<Reply>> => {
      if (this.kind === 'admission' && writes !== undefined) this.#world.functions.mayLeakAtMs = clock.nowMs;
      await clock.wait(this.#chance.oneOf([5, timeoutMs]), signal);
      this.#checkAlive();
      return { outcome: 'noReply' };
    };
    if (fault === 'lostRequest') return noReply();
    if (fault === 'lateRequest') {
      clock.in(this.#chance.pick(LATEST_MS), work);
      return noReply();
    }
    if (fault === 'throttled' || fault === 'serverError') {
      await clock.wait(this.#hopMs(fault), signal);
      this.#checkAlive();
      return { outcome: 'refused', by: fault };
    }
    return this.#answered(work, fault, noReply, { signal, writes });
  }

  async #answered<Reply>(
    work: () => Reply,
    fault: Fault | undefined,
    noReply: () => Promise<Exchanged<Reply>>,
    { signal, writes }: CallOptions,
  ): Promise<Exchanged<Reply>> {
    const { clock } = this.#world;
    if (fault === 'crashBefore') this.end();
    this.#checkAlive();
    const reply = work();
    if (fault === 'crashAfter') this.end();
    const haltsOnceIn = writes === undefined ? HALTS_ONCE_IN.read : HALTS_ONCE_IN.write;
    if (this.#world.isFaulty && this.#world.has('halts') && this.#chance.once(haltsOnceIn)) {
      this.freeze(this.#chance.pick(LONGEST_HALT_MS));
    }
    if (fault === 'repeated') clock.in(this.#chance.pick(LATEST_MS), work);
    if (fault === 'lostReply') return noReply();
    // Without faults, one wait per call is enough.
    if (this.#world.isFaulty) await clock.wait(this.#hopMs(fault), signal);
    this.#checkAlive();
    return { outcome: 'reply', reply };
  }

  #fault(isRepeated: boolean, writes: string | undefined): Fault | undefined {
    const { isFaulty, settings, clock, functions, table } = this.#world;
    if (!isFaulty) return undefined;
    const { lostWrites } = table;
    const isLost = this.kind === lostWrites?.of && writes === lostWrites.key && clock.nowMs < lostWrites.untilMs;
    if (isLost) return 'lostRequest';
    if (isRepeated && this.#lastFault !== undefined && !this.#chance.once(AGAIN_TWICE_IN)) return this.#lastFault;
    if (writes !== undefined && this.#world.has('lossyWrites') && this.#chance.once(LOST_ONCE_IN)) {
      return this.#chance.oneOf(LOST_WRITES);
    }
    if (clock.nowMs < functions.lossyUntilMs && this.#chance.once(LOST_ONCE_IN)) return this.#chance.oneOf(LOSSY);
    for (const [fault, rate] of settings.faults) if (this.#chance.once(rate)) return fault;
    return undefined;
  }

  #hopMs(fault: Fault | undefined): number {
    const { isFaulty } = this.#world;
    if (fault === 'slow') return this.#chance.pick(8_000);
    return 1 + this.#chance.pick(isFaulty ? 20 * this.#slowness : 20);
  }

  #checkAlive(): void {
    // The calls of a process that has ended have no effect.
    if (this.isDead) throw new Error(`${this.name} has ended`);
  }
}
