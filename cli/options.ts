import { userInfo } from 'node:os';
import { type Command, InvalidArgumentError } from 'commander';

export interface ConnectionOptions {
  readonly kubeconfig?: string;
  readonly context?: string;
}

/** Adds --kubeconfig and --context. Ignores KUBECONFIG, because a user must explicitly name the cluster to write to. */
export function withConnectionOptions(command: Command): Command {
  return command
    .option('--kubeconfig <file>', 'the kubeconfig of the cluster; default: that of its spec')
    .option('--context <name>', 'a context of --kubeconfig; default: its current context');
}

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const DURATION = /^(?:\d+(?:\.\d+)?[smhd])+$/;
const LONGEST_MS = 3650 * UNIT_MS.d;

/** Returns the milliseconds of `90s`, `10m`, `1h30m` or `2d`. @throws InvalidArgumentError of commander */
export function parseDuration(given: string): number {
  const text = given.trim();
  if (!DURATION.test(text)) throw new InvalidArgumentError('Use a duration such as 90s, 10m, 1h30m or 2d.');
  const msOf = (part: string) => Number(part.slice(0, -1)) * UNIT_MS[part.slice(-1) as keyof typeof UNIT_MS];
  const ms = text.split(/(?<=[smhd])/).reduce((sum, part) => sum + msOf(part), 0);
  if (ms > 0 && ms <= LONGEST_MS) return Math.round(ms);
  throw new InvalidArgumentError('A duration must be more than 0 and at most ten years.');
}

export function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError('Use a port from 0 to 65535; 0 chooses a free one.');
}

export function parseUrl(text: string): string {
  if (/^https?:\/\//.test(text) && URL.canParse(text)) return text;
  throw new InvalidArgumentError('Use a URL such as http://scylla:8000.');
}

export const DRY_RUN = 'print what would change, and change nothing; exit code 1 if anything would change';

export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // The user ID has no name, as in a container.
    return `user ${process.getuid?.() ?? 'unknown'}`;
  }
}
