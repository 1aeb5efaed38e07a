import { kubeconfigSources } from '../lib/aws/read-kubeconfig.ts';
import { kubeconfigLoader, type LoadKubeconfig } from '../lib/aws/stored-kubeconfig.ts';
import { createEnvironment } from '../lib/runtime/cluster-connections.ts';
import type { Environment } from '../lib/runtime/environment.ts';
import type { ClusterSpec, KubeconfigSpec } from '../lib/spec/cluster-spec.ts';
import { CLUSTER_NAME } from '../lib/spec/shapes.ts';
import type { TelemetryFactory } from '../lib/telemetry/telemetry.ts';
import { defined } from '../lib/util/values.ts';
import { warningTelemetry } from '../local/human-telemetry.ts';
import { pluginRunner } from '../local/kubeconfig-plugins.ts';
import { endingWith, targetGroups } from '../local/local-environment.ts';
import type { Cli } from './cli.ts';
import { usageError } from './errors.ts';
import type { OpenTable } from './open-table.ts';
import type { ConnectionOptions } from './options.ts';

export interface PassEnvironmentOptions extends ConnectionOptions {
  /** The stack that the passes belong to. Passes without a stack only observe a cluster that a stack owns. Default: no stack. */
  readonly stack?: string;
  readonly telemetry?: TelemetryFactory;
}

export interface PassEnvironment extends AsyncDisposable {
  readonly environment: Environment;
  readonly loadKubeconfig: LoadKubeconfig;
}

/** Creates the environment of a deployed function, but with the user's credentials. Prints each API server that is used. */
export async function passEnvironment(
  cli: Cli,
  { tableUntil, clock, running }: OpenTable,
  options: PassEnvironmentOptions = {},
): Promise<PassEnvironment> {
  const { kubeconfig, context } = options;
  if (context !== undefined && kubeconfig === undefined) throw usageError('--context needs --kubeconfig FILE.');
  const { table, region, profile } = cli.options;
  const namedFile = kubeconfig === undefined ? undefined : inFile(kubeconfig, context);
  // --kubeconfig does not apply to the management cluster of a `serviceRef`, whose name is not a cluster name.
  const namedFor = ({ name }: ClusterSpec) => (CLUSTER_NAME.test(name) ? namedFile : undefined);
  const ofRun = ({ name }: ClusterSpec) =>
    running?.cluster === name ? inFile(running.kubeconfig, running.context) : undefined;
  const sources = kubeconfigSources({ region, profile });
  const runPlugin = pluginRunner({ signal: cli.signal, say: (line) => cli.output.say(line) });
  const loadKubeconfig = printingServer(cli, (spec, signal) => {
    // A credential plugin runs on this machine only if the command names the kubeconfig or the cluster, because another
    // writer might have changed the spec in the table. If the table is in AWS, no plugin of a stored spec runs.
    const named = namedFor(spec);
    const isNamed = named !== undefined || (table === undefined && cli.operands.includes(spec.name));
    const load = kubeconfigLoader('.', sources, isNamed ? { runPlugin } : {});
    return load({ ...spec, kubeconfig: named ?? ofRun(spec) ?? spec.kubeconfig }, signal);
  });
  const { environment, close } = createEnvironment({
    nowMs: clock.nowMs,
    clock,
    sleep: cli.sleep,
    loadKubeconfig,
    startDeadline: endingWith(cli.signal),
    telemetry: options.telemetry ?? warningTelemetry((line) => cli.output.say(line)),
    reportingInstance: 'kbctl',
    healthyTargets: targetGroups({ profile }),
    ...defined({ stack: options.stack }),
    table: tableUntil,
  });
  return { environment, loadKubeconfig, [Symbol.asyncDispose]: close };
}

function inFile(file: string, context: string | undefined): KubeconfigSpec {
  return { file, ...defined({ context }) };
}

function printingServer(cli: Cli, load: LoadKubeconfig): LoadKubeconfig {
  const printed = new Set<string>();
  return async (spec, signal) => {
    const access = await load(spec, signal);
    const line = `${spec.name}: ${access.server} (${access.source}, context ${access.context})`;
    if (!printed.has(line)) cli.output.say(line);
    printed.add(line);
    return access;
  };
}
