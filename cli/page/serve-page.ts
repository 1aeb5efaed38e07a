import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { unlessAborted } from '../../lib/util/async.ts';
import { answering } from '../../local/loopback-server.ts';
import { listening } from '../listen.ts';
import type { FleetStatus } from '../status/cluster-status.ts';
import { readStatus } from '../status/read-status.ts';
import { answerPageRequest, type PageSources } from './page-requests.ts';

/** Reads the status of the named cluster, or of all clusters if there is no name. */
type ReadStatus = (signal: AbortSignal, cluster?: string) => Promise<FleetStatus>;

export interface PageServerOptions {
  readonly read: ReadStatus;
  /** The port of the page. Default: any free port. */
  readonly port?: number;
  /** The key in the address of the page. Default: a random key. */
  readonly key?: string | undefined;
  readonly pollMs?: number;
  /** The time for which a result is used before the table is read again. */
  readonly freshMs?: number;
  readonly nowMs?: () => number;
}

export interface PageServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Returns a reader of the status. It reads ranges only for the page of one cluster, because only this page has maps. */
export function statusReader(
  table: (signal: AbortSignal) => KeyValueTable,
  tableName: string,
  nowMs: () => number,
): ReadStatus {
  return (signal, cluster) => {
    const details = cluster === undefined ? 'brief' : 'full';
    return readStatus(table(signal), { nowMs: nowMs(), tableName, cluster, details });
  };
}

const HOST = '127.0.0.1';

/** Serves the page to this machine. @throws CliError if the port is not free */
export async function servePage(options: PageServerOptions): Promise<PageServer> {
  const { port = 0, key = randomBytes(18).toString('base64url'), pollMs = 2_000 } = options;
  const ended = new AbortController();
  const sources = { read: sharedReads(options, ended.signal), pollMs, key };
  const server: Server = createServer(
    answering((request) => answerPageRequest(request, { ...sources, port: portOf(server) })),
  );
  const close = await listening(server, { host: HOST, port }, 'The page', ended);
  return { url: `http://${HOST}:${portOf(server)}/${key}/`, close };
}

function sharedReads(
  { read, freshMs = 1_000, nowMs = Date.now }: PageServerOptions,
  ended: AbortSignal,
): PageSources['read'] {
  const reads = new Map<string | undefined, () => Promise<FleetStatus>>();
  return (cluster) => {
    const shared = reads.get(cluster) ?? sharedRead((signal) => read(signal, cluster), { freshMs, nowMs, ended });
    reads.set(cluster, shared);
    return shared();
  };
}

const TIMEOUT_MS = 10_000;

/** Shares one read among all requests, which use its result for `freshMs`. The first request after this time reads again. */
export function sharedRead<T>(
  read: (signal: AbortSignal) => Promise<T>,
  { freshMs, nowMs, ended }: { readonly freshMs: number; readonly nowMs: () => number; readonly ended: AbortSignal },
): () => Promise<T> {
  let latest: Promise<T> | undefined;
  // Until a read has ended, all requests share it, even if it takes longer than `freshMs`.
  let endedAtMs = Number.POSITIVE_INFINITY;
  return () => {
    if (latest === undefined || nowMs() - endedAtMs >= freshMs) {
      endedAtMs = Number.POSITIVE_INFINITY;
      const signal = AbortSignal.any([ended, AbortSignal.timeout(TIMEOUT_MS)]);
      latest = unlessAborted(signal, () => read(signal)).finally(() => {
        endedAtMs = nowMs();
      });
    }
    return latest;
  };
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}
