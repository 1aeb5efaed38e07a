import path from 'node:path';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { LoadKubeconfig } from '../lib/aws/stored-kubeconfig.ts';
import type { ClusterSpec, Loop } from '../lib/spec/cluster-spec.ts';
import type { ApiServers } from './stand-in/api-servers.ts';
import type { ServiceAllocator } from './stand-in/service-storage.ts';
import type { StandInApiServer } from './stand-in/stand-in-api-server.ts';

export interface RealCluster {
  readonly specFile: string;
  /** The kubeconfig file. Default: the file that the spec names, relative to the folder of the spec. */
  readonly kubeconfigFile?: string;
  readonly context?: string;
  /** The port of the loopback for the admission webhook. If absent, the webhook is not served. */
  readonly admissionPort?: number;
}

export interface StartOptions {
  /** The real cluster. If absent, an embedded cluster is started. */
  readonly real?: RealCluster;
  readonly demo?: boolean;
  /** The folder of the run, in which other commands find its table. Default: `.kbctl/<name of the cluster>`. */
  readonly dataFolder?: string;
}

/** The reason why a local run cannot start, cannot continue or is not found, for users. Exit codes: 3 configuration, 5 table. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly exitCode: 3 | 5;

  constructor(exitCode: 3 | 5, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** An open cluster of a local run. Its texts are for users. */
export interface LocalCluster extends AsyncDisposable {
  readonly spec: ClusterSpec;
  readonly apiServer: string;
  /** The source of the URL of the API server, such as a kubeconfig file, as a text for users. */
  readonly source: string;
  /** The absolute folder in which other commands find this run. */
  readonly folder: string;
  readonly kubeconfigFile: string;
  /** A context in the kubeconfig file. Default: the file's current context. */
  readonly context?: string | undefined;
  readonly tableServer: { readonly client: DynamoDBClient; readonly endpoint: string; readonly key: string };
  readonly notes: readonly string[];
  readonly hints: readonly string[];
  readonly loadKubeconfig: LoadKubeconfig;
  /** The parts of an embedded cluster; `undefined` for a real cluster. */
  readonly world?: EmbeddedWorld;
}

export interface EmbeddedWorld {
  readonly standIn: StandInApiServer;
  readonly allocation: ServiceAllocator;
  readonly apiServers: Pick<ApiServers, 'start' | 'stop'>;
}

export interface EmbeddedKind {
  readonly name: string;
  /** The published addresses of the API servers. */
  readonly addresses: readonly [string, ...string[]];
  readonly serviceClusterIPRange: string;
  /** Intervals shorter than the schedules of the functions. Only an embedded cluster can have them, not a spec in a file. */
  readonly intervalSeconds?: Partial<Readonly<Record<Loop, number>>>;
  readonly notes?: readonly string[];
}

/** Returns a path for a shell, relative if it is below the working directory. */
export function shellWord(file: string): string {
  const relative = path.relative('.', file);
  const shown = relative.startsWith('..') ? file : relative;
  return /^[\w./-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", "'\\''")}'`;
}
