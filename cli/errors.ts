import { isNativeError } from 'node:util/types';
import { ClusterError } from '../lib/kubernetes/cluster-port.ts';
import { TableError } from '../lib/table/errors.ts';

/** What the exit code of `kbctl` says. */
export const EXIT = {
  fine: 0,
  /** Findings, or a difference: what `kubectl diff` says with it. */
  findings: 1,
  usage: 2,
  /** A spec, a kubeconfig, credentials, or a cluster that is not as the command needs it. */
  configuration: 3,
  apiServer: 4,
  table: 5,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The one that a command of several parts ends with. */
export function worst(codes: readonly ExitCode[]): ExitCode {
  return codes.toSorted((one, other) => other - one)[0] ?? EXIT.fine;
}

/** Why a command cannot do what it was asked for, in words for people: what, why, and what to do next. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly code = 'CliError';
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

export function usageError(message: string): CliError {
  return new CliError(EXIT.usage, message);
}

export function configurationError(message: string, options?: ErrorOptions): CliError {
  return new CliError(EXIT.configuration, message, options);
}

/** The table is well, and what is registered in it is not as the command needs it. */
const REGISTERED_OTHERWISE: ReadonlySet<string> = new Set(['OwnedElsewhere', 'ChangedMeanwhile']);

/** Of what a person can put right; `undefined` for a fault of ours. */
export function exitCodeOf(error: unknown): ExitCode | undefined {
  if (error instanceof TableError) return REGISTERED_OTHERWISE.has(error.code) ? EXIT.configuration : EXIT.table;
  if (error instanceof ClusterError) return error.code === 'BadKubeconfig' ? EXIT.configuration : EXIT.apiServer;
  // Those of the folders below carry the same codes.
  if (error instanceof Error && 'exitCode' in error) return error.exitCode as ExitCode;
  return undefined;
}

/** What the system calls a failure, such as `ENOENT`; of what has no such name, its text. */
export function failureCode(error: unknown): string {
  return isNativeError(error) && 'code' in error ? String(error.code) : String(error);
}
