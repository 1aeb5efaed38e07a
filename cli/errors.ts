import { ClusterError } from '../lib/kubernetes/cluster-port.ts';
import { TableError } from '../lib/table/errors.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';

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
