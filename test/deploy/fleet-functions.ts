import { getPriority, setPriority } from 'node:os';
import { afterAll, beforeAll, expect } from '@jest/globals';
import type { ClusterSpec, Loop } from '../../lib/spec/cluster-spec.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { claimCluster } from '../../lib/table/clusters.ts';
import { LOCAL_TABLE, localTable } from '../../local/local-environment.ts';
import { startTableServer } from '../../local/table-server.ts';
import { aClusterSpec, aServer } from '../support/a-cluster-spec.ts';
import { heapOptions } from '../support/bundled-functions.ts';
import { type MisbehavingCluster, startMisbehavingCluster } from '../support/misbehaving-cluster.ts';
import { type Runnable, runFunction } from './emulator-function.ts';

/** The address of the API server of each cluster, in the network namespace of the tests. */
export const ADDRESS = '10.9.8.7';
const STACK = 'stack';

interface FunctionOptions extends Pick<Runnable, 'folder' | 'limitMs' | 'cpuShare'> {
  readonly memoryMb: number;
  /** Options of Node.js in addition to the size of the heap. */
  readonly nodeOptions?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

const stops: (() => unknown)[] = [];

/** Calls a function after the tests of the file. Several functions are called in reverse order. */
export function afterTheseTests(stop: () => unknown): void {
  stops.push(stop);
}

beforeAll(() => {
  const before = getPriority();
  // These tests measure times, while other files run beside them. A user without this right runs them alone.
  try {
    setPriority(-10);
    afterTheseTests(() => setPriority(before));
  } catch (error) {
    expect(error).toMatchObject({ code: 'ERR_SYSTEM_ERROR' });
  }
});

afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

/**
 * Starts an API server for each cluster.
 * @param onCall is called at each call of a pass to an API server. Probes do not count
 */
export async function startClusters(
  names: readonly string[],
  onCall: (name: string) => void,
): Promise<ReadonlyMap<string, MisbehavingCluster>> {
  const starts = names.map(async (name) => {
    const cluster = await startMisbehavingCluster(ADDRESS);
    afterTheseTests(() => cluster.stop());
    cluster.misbehave(() => {
      onCall(name);
      return undefined;
    });
    return [name, cluster] as const;
  });
  return new Map(await Promise.all(starts));
}

/** Starts the table of a fleet on loopback. */
export async function startFleetTable() {
  const server = await startTableServer({ key: 'local' });
  afterTheseTests(() => server.close());
  const table = localTable(server.client);
  return {
    /** Registers a cluster of the stack, so that each loop has passes for it. @param url The URL of its API server. */
    register: async (name: string, file: string, url: string, spec: Partial<ClusterSpec> = {}) => {
      const apiServers = [aServer(ADDRESS, { url: `${url}/readyz` })];
      await registerCluster(table, aClusterSpec({ name, kubeconfig: { file }, apiServers, ...spec }));
      await claimCluster(table, name, STACK);
    },
    /** Runs the function of a loop from its bundle in `folder`, with the heap size for its memory. */
    run: (loop: Loop, { memoryMb, nodeOptions = '', environment, folder, ...options }: FunctionOptions) => {
      const running = runFunction({
        ...{ folder, opt: '', handler: `functions/${loop}.handler` },
        environment: {
          TABLE_NAME: LOCAL_TABLE,
          STACK,
          REPORTING_INSTANCE: STACK,
          AWS_REGION: 'local',
          AWS_ACCESS_KEY_ID: 'local',
          AWS_SECRET_ACCESS_KEY: 'local',
          AWS_ENDPOINT_URL: server.endpoint,
          NODE_OPTIONS: `${heapOptions(memoryMb)} ${nodeOptions}`,
          ...environment,
        },
        ...options,
      });
      afterTheseTests(() => running.stop());
      return running;
    },
  };
}
