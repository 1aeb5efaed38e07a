import { userInfo } from 'node:os';
import { type Command, InvalidArgumentError } from 'commander';
import { usageError } from './errors.ts';

/** How a person who runs passes says by which way the API server is reached. */
export interface ConnectionOptions {
  /** A file, in place of what the spec names. */
  readonly kubeconfig?: string;
  /** Of that file. Default: its current context. */
  readonly context?: string;
}

/** The environment variable KUBECONFIG is on purpose no default: which cluster is written to is said each time. */
export function withConnectionOptions(command: Command): Command {
  return command
    .option('--kubeconfig <file>', 'reach the cluster by this kubeconfig; default: the one that its spec names')
    .option('--context <name>', 'a context of --kubeconfig; default: its current one');
}

/** These two of all the options of a command. */
export function connectionOf({ kubeconfig, context }: ConnectionOptions): ConnectionOptions {
  return { ...(kubeconfig !== undefined && { kubeconfig }), ...(context !== undefined && { context }) };
}

/** @throws CliError for options that do not go together: before anything is done, best of all. */
export function checkConnectionOptions({ kubeconfig, context }: ConnectionOptions): void {
  if (context !== undefined && kubeconfig === undefined) {
    throw usageError('--context goes with --kubeconfig FILE: a context of which kubeconfig?');
  }
}

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const DURATION = /^(\d+(?:\.\d+)?)([smhd])/;
const LONGEST_MS = 3650 * UNIT_MS.d;

/**
 * Milliseconds of `90s`, `10m`, `1h30m`, `2d`.
 * @throws InvalidArgumentError of commander, whose message is shown beside the option.
 */
export function parseDuration(text: string): number {
  let rest = text.trim();
  let ms = 0;
  do {
    const [part, count, unit] = DURATION.exec(rest) ?? [];
    if (part === undefined) throw new InvalidArgumentError('A duration is like 90s, 10m, 1h30m or 2d.');
    ms += Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
    rest = rest.slice(part.length);
  } while (rest !== '');
  if (ms > 0 && ms <= LONGEST_MS) return Math.round(ms);
  throw new InvalidArgumentError('A duration is more than 0 and at most ten years.');
}

/** @throws InvalidArgumentError of commander, whose message is shown beside the option. */
export function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError('A port is a number from 0 to 65535; 0 takes a free one.');
}

/** Ends the help of a command: every one shows how it is used. */
export function withExamples(command: Command, examples: readonly string[]): Command {
  return command.addHelpText('after', `\nExamples:\n${examples.map((line) => `  ${line}`).join('\n')}`);
}

/** Of whoever runs the command, on this machine. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A user without an entry, as in a container.
    return `user ${process.getuid?.() ?? 'unknown'}`;
  }
}
