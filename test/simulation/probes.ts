import { isIPv6 } from './control-plane.ts';
import type { Process } from './process.ts';
import type { World } from './world.ts';

interface Probe {
  readonly atMs: number;
  readonly pass: string;
  readonly isOfAgent: boolean;
  readonly address: string;
  readonly status: number | undefined;
}

export interface ProbeResult {
  readonly status: number | undefined;
  /** The process was blocked during the probe, so silence does not show that the server is down. */
  readonly isLate?: boolean;
}

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
export const REMEMBERED_MS = 225_000;
const ALIVE = new Set([200, 401, 403, 429]);

/** The probes of the API servers, and what they prove. */
export class Probes {
  readonly #world: World;
  #all: Probe[] = [];
  readonly #byPass = new Map<string, Probe[]>();
  /** The addresses that each pass probes. */
  readonly #targets = new Map<string, string[]>();

  constructor(world: World) {
    this.#world = world;
  }

  get #now(): number {
    return this.#world.clock.nowMs;
  }

  /** Records that a pass begins to probe an address. */
  begin(process: Process, address: string): void {
    const pass = passOf(process);
    this.#targets.set(pass, [...(this.#targets.get(pass) ?? []), address]);
  }

  /** Records a probe. Returns the addresses whose server has ended, as the probes of this pass prove. */
  add(process: Process, address: string, { status, isLate = false }: ProbeResult): readonly string[] {
    if (status === undefined ? !isLate : !ALIVE.has(status)) this.#world.servers.notice(address);
    // Other processes probe only to find a server that answers.
    if (process.kind !== 'endpoints' && process.kind !== 'agent') return [];
    while ((this.#all[0]?.atMs ?? this.#now) <= this.#now - REMEMBERED_MS) this.#all.shift();
    const pass = passOf(process);
    const probe: Probe = { atMs: this.#now, pass, isOfAgent: process.kind === 'agent', address, status };
    const ofPass = [...this.#ofPass(pass), probe];
    this.#all.push(probe);
    this.#byPass.set(pass, ofPass);
    return ofPass.filter((each) => this.#provesEnd(each)).map((each) => each.address);
  }

  of(address: string): readonly Probe[] {
    return this.#all.filter((probe) => probe.address === address);
  }

  hasAnswered(address: string, sinceMs: number): boolean {
    return this.of(address).some((probe) => probe.atMs >= sinceMs && isAlive(probe));
  }

  wasSeenDown(address: string, sinceMs: number): boolean {
    return this.of(address).some((probe) => probe.atMs >= sinceMs && this.#provesMiss(probe));
  }

  /** Returns the misses that may have decided a write that was sent at `sentAtMs`. */
  missesOf(address: string, sentAtMs: number): readonly Probe[] {
    const tries = this.of(address);
    // A pass whose process was late probes an address twice, so passes are counted here and not probes.
    const lastPasses = [...new Set(tries.map(({ pass }) => pass))].slice(-LAST_TRIES);
    const counts = ({ atMs, pass }: Probe) => atMs > sentAtMs - EVIDENCE_MS || lastPasses.includes(pass);
    return tries.filter((probe) => counts(probe) && this.#provesMiss(probe));
  }

  areTwo(misses: readonly Probe[]): boolean {
    const times = misses.map(({ atMs }) => atMs);
    const isSkewed = this.#world.has('skewedFunctions') || this.#world.has('skewedMachines');
    return Math.max(...times) - Math.min(...times) >= BETWEEN_MISSES_MS[isSkewed ? 'skewed' : 'correct'];
  }

  /** Returns whether the pass has probed the address, and got only answers of a live server. */
  answersIn(address: string, pass: string): { readonly wasProbed: boolean; readonly isAlive: boolean } {
    const own = this.of(address).filter((probe) => probe.pass === pass);
    return { wasProbed: own.length > 0, isAlive: own.length > 0 && own.every(isAlive) };
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
    if (this.#targets.get(pass)?.filter(isOfFamily).length === 1) return true;
    return this.#ofPass(pass).some((probe) => probe.status !== undefined && isOfFamily(probe.address));
  }

  #ofPass(pass: string): readonly Probe[] {
    return this.#byPass.get(pass) ?? [];
  }
}

function isAlive({ status }: Probe): boolean {
  return status !== undefined && ALIVE.has(status);
}

export function passOf({ name, invocation }: Process): string {
  return `${name}/${invocation}`;
}
