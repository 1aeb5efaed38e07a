import type { Command } from 'commander';
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
