import { ClusterError } from '../lib/kubernetes/cluster-port.ts';
import { TableError } from '../lib/table/key-value-table.ts';

export const EXIT = {
  fine: 0,
  /** There are findings or differences, as in `kubectl diff`. */
  findings: 1,
  usage: 2,
  /** The fault is in a spec, a kubeconfig, credentials, or the state of a cluster. */
  configuration: 3,
  apiServer: 4,
  table: 5,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

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

/** Returns the exit code for an error; `undefined` for a defect of this program. */
export function exitCodeOf(error: unknown): ExitCode | undefined {
  if (error instanceof TableError) return error.code === 'ChangedMeanwhile' ? EXIT.configuration : EXIT.table;
  if (error instanceof ClusterError) return error.code === 'BadKubeconfig' ? EXIT.configuration : EXIT.apiServer;
  // Errors of local/ contain one of these exit codes.
  if (error instanceof Error && 'exitCode' in error) return error.exitCode as ExitCode;
  return undefined;
}
