import path from 'node:path';
import { kubeconfigReader, type ReadKubeconfig } from '../lib/aws/read-kubeconfig.ts';
import type { ClusterSpec } from '../lib/cluster/cluster-spec.ts';
import { createEnvironment } from '../lib/environment/create-environment.ts';
import { loadKubeconfigFile } from '../lib/kubernetes/kubeconfig.ts';
import type { Environment } from '../lib/runtime/environment.ts';
import { kubeconfigLoader, kubeconfigPlace, type LoadKubeconfig } from '../lib/runtime/load-kubeconfig.ts';
import type { TelemetryFactory } from '../lib/telemetry/telemetry.ts';
import { warningTelemetry } from '../local/human-telemetry.ts';
import { runPlugin } from '../local/kubeconfig-plugins.ts';
import { endingWith } from '../local/local-environment.ts';
import type { Running } from '../local/running.ts';
import type { Cli } from './cli.ts';
import type { OpenTable } from './open-table.ts';
import { type ConnectionOptions, checkConnectionOptions } from './options.ts';

export interface PassEnvironmentOptions extends ConnectionOptions {
  /** Whose passes these are, for those that write what a stack owns. Default: nobody's, and they only observe it. */
  readonly stack?: string;
  /**
   * Where a kubeconfig file that a spec names is looked for, for specs in files of this person. Default: the specs are in
   * the table, and files are looked for from the working directory on.
   */
  readonly folderOf?: (spec: ClusterSpec) => string;
  /** Default: warnings and errors are said on stderr. */
  readonly telemetry?: TelemetryFactory;
}

/** What passes rest on that a person runs from the command line. */
export interface PassEnvironment {
  readonly environment: Environment;
  /** Reads a kubeconfig anew. */
  readonly loadKubeconfig: LoadKubeconfig;
  /** Ends every connection. */
  close(): Promise<void>;
}

/**
 * As deployed, with this person's credentials: the kubeconfig is that of the spec, or the one in the options. Which server
 * is touched is said first. Everything ends with the command.
 * @throws CliError for options that do not go together.
 */
export async function passEnvironment(
  cli: Cli,
  { tableUntil, clock, running }: OpenTable,
  options: PassEnvironmentOptions = {},
): Promise<PassEnvironment> {
  const { nowMs, skewMs } = clock;
  const own = options.kubeconfig === undefined && options.folderOf === undefined ? running : undefined;
  const chosen = (name: string) => options.kubeconfig ?? (own?.cluster === name ? own.kubeconfig : undefined);
  const loadKubeconfig = tellingServer(cli, chosen, loaderOf(cli, options, own));
  const { environment, close } = createEnvironment({
    nowMs,
    skewMs,
    loadKubeconfig,
    startDeadline: endingWith(cli.signal),
    telemetry: options.telemetry ?? warningTelemetry((line) => cli.output.say(line)),
    reportingInstance: 'kbctl',
    ...(options.stack !== undefined && { stack: options.stack }),
    table: tableUntil,
  });
  return { environment, loadKubeconfig, close };
}

/** @param running the local run whose cluster is reached as it reaches it */
function loaderOf(cli: Cli, options: PassEnvironmentOptions, running: Running | undefined): LoadKubeconfig {
  const { table, region, profile } = cli.options;
  const { kubeconfig, context, folderOf } = options;
  if (kubeconfig !== undefined) {
    const file = path.resolve(kubeconfig);
    return () => loadKubeconfigFile(file, { ...(context !== undefined && { context }), runPlugin });
  }
  checkConnectionOptions(options);
  const read: ReadKubeconfig = kubeconfigReader({
    ...(region !== undefined && { region }),
    ...(profile !== undefined && { profile }),
  });
  return (spec, signal) => {
    // A table may hold clusters of other writers: only one that this person named, or whose file is here, may run a
    // plugin on this machine. The functions run none, so that none runs for their clusters either.
    const isNamed = cli.operands.includes(spec.name) || folderOf !== undefined;
    const plugins = table === undefined && isNamed ? { runPlugin } : {};
    if (running?.cluster === spec.name) {
      return loadKubeconfigFile(running.kubeconfig, {
        ...(running.context && { context: running.context }),
        ...plugins,
      });
    }
    return kubeconfigLoader(folderOf?.(spec) ?? '.', read, plugins)(spec, signal);
  };
}

/** Whoever named the wrong one reads it before anything is done there. */
function tellingServer(
  cli: Cli,
  chosen: (cluster: string) => string | undefined,
  load: LoadKubeconfig,
): LoadKubeconfig {
  const told = new Set<string>();
  return async (spec, signal) => {
    const access = await load(spec, signal);
    const kubeconfig = chosen(spec.name);
    const place = kubeconfig === undefined ? `kubeconfig from ${kubeconfigPlace(spec)}` : `kubeconfig ${kubeconfig}`;
    const line = `${spec.name}: ${access.server} (${place}, context ${access.context})`;
    if (!told.has(line)) cli.output.say(line);
    told.add(line);
    return access;
  };
}
