import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** The measurements of this project and of the compared program in the same run. Smaller values are better. */
export interface Figure {
  readonly what: string;
  readonly peer: string;
  readonly unit: string;
  readonly ours: readonly number[];
  readonly others: readonly number[];
  /** The ratio above which `--quick` fails: a multiple of the usual ratio, never a time. */
  readonly limit?: number;
}

/** Returns the ratio of the best rounds, because the load of the machine can only make a round slower. */
export function ratioOf({ ours, others }: Figure): number {
  return Math.min(...ours) / Math.min(...others);
}

export async function linesOf(program: string, args: readonly string[]): Promise<string[]> {
  // The limit of the output is large, because upstream's repair logs each finding.
  const { stdout } = await promisify(execFile)(program, args, { maxBuffer: 64 * 1024 * 1024 });
  return stdout.trim().split('\n');
}

export async function timesOf(work: () => Promise<unknown>): Promise<readonly [number, number]> {
  const [startedAt, before] = [performance.now(), process.cpuUsage()];
  await work();
  const { user, system } = process.cpuUsage(before);
  return [performance.now() - startedAt, (user + system) / 1000];
}

export function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}

export function digits(value: number): number {
  return Number(value.toPrecision(3));
}
