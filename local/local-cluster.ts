import type { LoadKubeconfig } from '../lib/aws/stored-kubeconfig.ts';
import type { ClusterSpec } from '../lib/spec/cluster-spec.ts';
import type { ApiServers } from './stand-in/api-servers.ts';
import type { ServiceAllocator } from './stand-in/service-storage.ts';
import type { StandInApiServer } from './stand-in/stand-in-api-server.ts';
import type { TableServer } from './table-server.ts';

/** An open cluster of a local run. Its texts are for users. */
export interface LocalCluster extends AsyncDisposable {
  readonly spec: ClusterSpec;
  readonly apiServer: string;
  /** The URL of the API server and the source of the URL, such as a kubeconfig file, as a text for users. */
  readonly server: string;
  /** The absolute folder in which other commands find this run. */
  readonly folder: string;
  readonly kubeconfigFile: string;
  /** A context in the kubeconfig file. Default: the file's current context. */
  readonly context?: string | undefined;
  readonly tableServer: TableServer;
  /** The place of the table, as a text. */
  readonly tableFolder: string;
  readonly notes: readonly string[];
  readonly hints: readonly string[];
  readonly loadKubeconfig: LoadKubeconfig;
  readonly world?: EmbeddedWorld;
}

export interface EmbeddedWorld {
  readonly standIn: StandInApiServer;
  readonly allocation: ServiceAllocator;
  readonly apiServers: Pick<ApiServers, 'start' | 'stop'>;
}
