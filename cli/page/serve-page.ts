import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ClusterStatus, FleetStatus } from '../../lib/status/cluster-status.ts';
import { configurationError, failureCode } from '../errors.ts';
import { answerPageRequest, type PageSources } from './page-requests.ts';
import { SharedRead, type SharedReadOptions } from './shared-read.ts';

export interface PageServerOptions {
  /** A signal ends the read when it takes too long, or nobody waits any more. */
  readonly readFleet: (signal: AbortSignal) => Promise<FleetStatus>;
  /** `undefined`: no such cluster. Absent: it is looked up among all. */
  readonly readCluster?: (name: string, signal: AbortSignal) => Promise<ClusterStatus | undefined>;
  /** A loopback address. */
  readonly host?: '127.0.0.1' | '::1';
  /** 0 (the default) takes a free one. */
  readonly port?: number;
  /** How often an open page asks. */
  readonly pollMs?: number;
  /** What was read is shown to all for so long. */
  readonly freshMs?: number;
  readonly readTimeoutMs?: number;
  readonly nowMs?: () => number;
}

export interface PageServer {
  /** `http://127.0.0.1:<port>/` */
  readonly url: string;
  close(): Promise<void>;
}

/** Clusters whose pages are open at a time; who looks at more of them reads them again. */
const MOST_CLUSTERS = 50;

/**
 * Serves the page to this machine, read anew as long as somebody looks.
 * @throws CliError when the port is not free.
 */
export async function servePage(options: PageServerOptions): Promise<PageServer> {
  const { host = '127.0.0.1', port = 0, pollMs = 2_000, nowMs = Date.now } = options;
  const read = { freshMs: options.freshMs ?? 1_000, timeoutMs: options.readTimeoutMs ?? 10_000, nowMs };
  const reads = sharedReads(options, read);
  const server = createServer((request, response) => {
    const sources = { ...reads, pollMs, port: portOf(server) };
    answerPageRequest(asked(request), sources)
      .then(({ status, headers, body }) => response.writeHead(status, headers).end(body))
      .catch((error: unknown) => response.destroy(error instanceof Error ? error : new Error(String(error))));
  });
  await listening(server, host, port);
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${portOf(server)}/`,
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

function sharedReads({ readFleet, readCluster }: PageServerOptions, options: SharedReadOptions): Reads {
  const fleet = new SharedRead(readFleet, options);
  const clusters = new Map<string, SharedRead<ClusterStatus | undefined>>();
  const clusterRead = (name: string) => {
    const read = clusters.get(name) ?? new SharedRead((signal) => ofCluster(name, signal), options);
    // The one asked for last goes last.
    clusters.delete(name);
    clusters.set(name, read);
    const [oldest] = clusters.keys();
    if (clusters.size > MOST_CLUSTERS && oldest !== undefined) clusters.delete(oldest);
    return read;
  };
  const ofCluster = async (name: string, signal: AbortSignal) => {
    if (readCluster !== undefined) return readCluster(name, signal);
    const { value, trouble } = await fleet.get();
    if (trouble !== undefined || value === undefined) throw new Error(trouble?.message);
    return value.of.clusters.find((cluster) => cluster.name === name);
  };
  return {
    fleet: () => fleet.get(),
    cluster: (name) => clusterRead(name).get(),
    end: () => {
      for (const read of [fleet, ...clusters.values()]) read.end();
    },
  };
}

function asked({ method = 'GET', url = '/', headers }: IncomingMessage) {
  return { method, url, host: headers.host, origin: headers.origin };
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

async function listening(server: Server, host: string, port: number): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, resolve);
    });
  } catch (error) {
    throw configurationError(
      `The page cannot be served at port ${port} (${failureCode(error)}): choose another, or 0 for a free one.`,
      { cause: error },
    );
  }
}
