import { isDeepStrictEqual } from 'node:util';
import { CutCalls, type End } from '../support/cut-calls.ts';

/** One pass, request or review, and the world in which it starts. */
export interface Subject<World> {
  readonly what: string;
  readonly world: () => Promise<World>;
  /** Runs one invocation. All its calls go through `calls`. */
  readonly run: (world: World, calls: CutCalls) => Promise<unknown>;
  /** Runs after the cut. Default: the same invocation again. */
  readonly again?: (world: World) => Promise<unknown>;
  /** Returns everything that must be equal in the end. */
  readonly state: (world: World) => Promise<unknown>;
  /** The calls at which a cut may lead to another end state, and the reason. */
  readonly mayDiffer?: { readonly at: RegExp; readonly ends: readonly End[]; readonly why: string };
}

const TABLE_WRITES = /^put [^A-Z]/;
const WRITES = /^(put|delete|create|update|patch|queue)/;
/**
 * For some ends, the calls that can end in this way. Every call can have the other ends. A process that ends at a read leaves the
 * same state as one that ends at the next write. Only a write to the table can have an unclear reply.
 */
const ENDS_OF: { readonly [Each in End]?: RegExp } = {
  killedBefore: WRITES,
  killedAfter: WRITES,
  failedAfter: WRITES,
  late: WRITES,
  unclearBefore: TABLE_WRITES,
  unclearAfter: TABLE_WRITES,
};

/** The calls and the end state of a run without cuts. */
export interface Uncut {
  readonly calls: readonly string[];
  readonly expected: unknown;
}

export async function runUncut<World>(subject: Subject<World>): Promise<Uncut> {
  const calls = new CutCalls();
  const expected = await endStateAfter(subject, calls);
  return { calls: calls.made, expected };
}

/** Cuts one run at each of its calls. Returns the number of cuts, and those whose end state differs from the uncut run. */
export async function sweep<World>(subject: Subject<World>, end: End, { calls: names, expected }: Uncut) {
  const differences: object[] = [];
  let cuts = 0;
  for (const [at, name] of names.entries()) {
    if (ENDS_OF[end]?.test(name) === false) continue;
    cuts += 1;
    const calls = new CutCalls(at, end);
    const found = await endStateAfter(subject, calls);
    const { mayDiffer } = subject;
    const isKnown = mayDiffer?.ends.includes(end) === true && mayDiffer.at.test(calls.cutAt);
    if (!isKnown && !isDeepStrictEqual(found, expected)) {
      differences.push({ at: `call ${at}: ${calls.cutAt}`, found, expected });
    }
  }
  return { cuts, differences };
}

async function endStateAfter<World>(
  { world: start, run, again, state }: Subject<World>,
  calls: CutCalls,
): Promise<unknown> {
  const world = await start();
  await calls.ends(() => run(world, calls));
  await (again ?? ((same) => run(same, new CutCalls())))(world);
  await calls.arrive();
  return state(world);
}
