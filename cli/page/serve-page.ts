import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { configurationError, failureCode } from '../errors.ts';
import type { ClusterStatus, FleetStatus } from '../status/cluster-status.ts';
import { readClusterStatus, readFleetStatus } from '../status/read-status.ts';
import { answerPageRequest, type PageSources } from './page-requests.ts';
import { SharedRead, type SharedReadOptions } from './shared-read.ts';

/** Reads the status. The signal ends a read that takes too long, or whose page was closed. */
export interface PageReads {
  readonly readFleet: (signal: AbortSignal) => Promise<FleetStatus>;
  /** `undefined`: no such cluster. */
  readonly readCluster: (name: string, signal: AbortSignal) => Promise<ClusterStatus | undefined>;
}

export interface PageServerOptions extends PageReads {
  /** The port; 0 (the default) is a free one. */
  readonly port?: number;
  /** The key of requests. Default: a random one. */
  readonly key?: string | undefined;
  /** The refresh interval of an open page. */
  readonly pollMs?: number;
  /** How long a result is used before the table is read again. */
  readonly freshMs?: number;
  readonly nowMs?: () => number;
}

export interface PageServer {
  /** `http://127.0.0.1:<port>/<key>/` */
  readonly url: string;
  close(): Promise<void>;
}

/** With more clusters the page has no room for all maps: the page of a cluster reads its own. */
const MOST_WITH_MAPS = 50;

export function readsOf(
  table: (signal: AbortSignal) => KeyValueTable,
  tableName: string,
  nowMs: () => number,
): PageReads {
  return {
    readFleet: (signal) =>
      readFleetStatus(table(signal), tableName, nowMs(), {
        details: (clusters) => (clusters > MOST_WITH_MAPS ? 'brief' : 'full'),
      }),
    readCluster: (name, signal) => readClusterStatus(table(signal), name, nowMs()),
  };
}

const HOST = '127.0.0.1';

/**
 * Serves the page to this machine, and reads the table while a page is open.
 * @throws CliError if the port is not free.
 */
export async function servePage(options: PageServerOptions): Promise<PageServer> {
  const { port = 0, key = randomBytes(18).toString('base64url'), pollMs = 2_000, nowMs = Date.now } = options;
  const reads = sharedReads(options, { freshMs: options.freshMs ?? 1_000, nowMs });
  const server = createServer((request, response) => {
    const sources = { ...reads, pollMs, key, port: portOf(server) };
    answerPageRequest(request, sources)
      .then(({ status, headers, body }) => response.writeHead(status, headers).end(body))
      .catch((error: unknown) => response.destroy(error instanceof Error ? error : new Error(String(error))));
  });
  await listening(server, port);
  return {
    url: `http://${HOST}:${portOf(server)}/${key}/`,
    close: async () => {
      reads.end();
      await new Promise<void>((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
        server.closeAllConnections();
      });
    },
  };
}

type Reads = Pick<PageSources, 'fleet' | 'cluster'> & { readonly end: () => void };

function sharedReads({ readFleet, readCluster }: PageReads, options: SharedReadOptions): Reads {
  const fleet = new SharedRead(readFleet, options);
  const clusters = new Map<string, SharedRead<ClusterStatus | undefined>>();
  const clusterRead = (name: string) => {
    const read = clusters.get(name) ?? new SharedRead((signal) => readCluster(name, signal), options);
    clusters.set(name, read);
    return read;
  };
  return {
    fleet: () => fleet.get(),
    cluster: (name) => clusterRead(name).get(),
    end: () => {
      for (const read of [fleet, ...clusters.values()]) read.end();
    },
  };
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

async function listening(server: Server, port: number): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, HOST, resolve);
    });
  } catch (error) {
    throw configurationError(
      `The page cannot be served at port ${port} (${failureCode(error)}): choose another, or 0 for a free one.`,
      { cause: error },
    );
  }
}
