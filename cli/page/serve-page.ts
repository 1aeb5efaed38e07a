import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { describeError } from '../../lib/telemetry/telemetry.ts';
import { unlessAborted } from '../../lib/util/async.ts';
import { attempt } from '../../lib/util/values.ts';
import { answering, isSame, type LocalReply } from '../../local/local-server.ts';
import { listening } from '../listen.ts';
import type { FleetStatus } from '../status/cluster-status.ts';
import { readStatus } from '../status/read-status.ts';
import { contentSecurityPolicy } from './page-frame.ts';
import { renderClusterPage, renderFleetPage } from './render-pages.ts';

/** Reads the status of the named cluster, or of all clusters if there is no name. */
type ReadStatus = (signal: AbortSignal, cluster?: string) => Promise<FleetStatus>;

export interface PageServerOptions {
  readonly read: ReadStatus;
  /** The port of the page. Default: any free port. */
  readonly port?: number;
  /** The key in the address of the page. Default: a random key. */
  readonly key?: string | undefined;
  readonly pollMs?: number;
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
  const { port = 0, key = randomBytes(18).toString('base64url'), pollMs = 2_000, nowMs = Date.now } = options;
  const ended = new AbortController();
  const reads = new Map<string | undefined, () => Promise<FleetStatus>>();
  const read = (cluster?: string) => {
    const shared = reads.get(cluster) ?? sharedRead((signal) => options.read(signal, cluster), nowMs, ended.signal);
    reads.set(cluster, shared);
    return shared();
  };
  const server: Server = createServer(
    answering((request) => answerPageRequest(request, { read, pollMs, key, port: portOf(server) })),
  );
  const close = await listening(server, { host: HOST, port }, 'The page', ended);
  return { url: `http://${HOST}:${portOf(server)}/${key}/`, close };
}

const TIMEOUT_MS = 10_000;
const FRESH_MS = 1_000;

/** Returns a function that all requests share. After a read, it returns the same result for a second; then it reads again. */
export function sharedRead<T>(
  read: (signal: AbortSignal) => Promise<T>,
  nowMs: () => number,
  ended: AbortSignal,
): () => Promise<T> {
  let latest: Promise<T> | undefined;
  // Until a read has ended, all requests share it, even if it takes longer than a second.
  let endedAtMs = Number.POSITIVE_INFINITY;
  return () => {
    if (latest === undefined || nowMs() - endedAtMs >= FRESH_MS) {
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

type PageRequest = Pick<IncomingMessage, 'method' | 'url' | 'headers'>;

export interface PageSources {
  /** Reads the status of the named cluster, or of all clusters if there is no name. */
  readonly read: (cluster?: string) => Promise<FleetStatus>;
  readonly pollMs: number;
  readonly port: number;
  /**
   * The key that a request must contain, as the first part of its path or as a scraper's bearer token. It is not a
   * cookie: a browser would send a cookie to the servers of all users of this machine, because cookies ignore ports.
   */
  readonly key: string;
}

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': `${contentSecurityPolicy(true)}; frame-ancestors 'none'`,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

/** Answers requests that contain the key, from browsers and scrapers on this machine. No request changes anything. */
export async function answerPageRequest(request: PageRequest, sources: PageSources): Promise<LocalReply> {
  if (!isOurHost(request.headers.host, sources.port))
    return refusal(421, 'This page is only for this machine: open it at its 127.0.0.1 address.');
  if (request.headers.origin !== undefined) return refusal(403, 'Other pages cannot read this page.');
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return refusal(405, 'This page is read-only.', { allow: 'GET, HEAD' });
  const path = pathWithKey(request, sources);
  // Links of the page are relative, so its address ends with a slash.
  if (path === '') return refusal(308, 'The address of the page ends with a slash.', { location: `/${sources.key}/` });
  if (path === undefined) return refusal(401, 'Open the link that kbctl printed: it has the key of this page.');
  return answerAt(
    attempt(() => decodeURIComponent(path)),
    sources,
  ).catch((error: unknown) => refusal(503, `The table cannot be read: ${describeError(error).message}`));
}

function pathWithKey({ url, headers: { authorization = '' } }: PageRequest, { key }: PageSources): string | undefined {
  const path = URL.parse(url ?? '/', 'http://page')?.pathname ?? '/';
  if (isSame(/^Bearer (.+)$/i.exec(authorization)?.[1], key)) return path;
  const [, first, below = ''] = /^\/([^/]*)(\/.*)?$/.exec(path) ?? [];
  return isSame(first, key) ? below : undefined;
}

async function answerAt(path: string | undefined, sources: PageSources): Promise<LocalReply> {
  const options = { live: { pollMs: sources.pollMs } };
  if (path === '/') return shown(renderFleetPage(await sources.read(), options));
  if (path === '/metrics') {
    const { fleetMetrics } = await import('./fleet-metrics.ts');
    const { contentType, text } = await fleetMetrics(await sources.read());
    return { status: 200, headers: { ...HEADERS, 'content-type': contentType }, body: text };
  }
  const [, name] = /^\/clusters\/([^/]+)$/.exec(path ?? '') ?? [];
  if (name === undefined) return refusal(404, 'Not found. All clusters are at the link that kbctl printed.');
  const { clusters, atMs } = await sources.read(name);
  if (clusters[0] === undefined) return refusal(404, 'The table has no cluster of this name.');
  return shown(renderClusterPage(clusters[0], { ...options, atMs }));
}

/** Returns whether `host` is this server. Another name can mean that another site tries to read the page by DNS rebinding. */
function isOurHost(host: string | undefined, port: number): boolean {
  const given = host?.toLowerCase();
  // Browsers leave out port 80.
  return ['127.0.0.1', 'localhost'].some((name) => given === `${name}:${port}` || (port === 80 && given === name));
}

function shown(body: string): LocalReply {
  return { status: 200, headers: HEADERS, body };
}

function refusal(status: number, message: string, headers: LocalReply['headers'] = {}): LocalReply {
  const type = { 'content-type': 'text/plain; charset=utf-8' };
  return { status, headers: { ...HEADERS, ...type, ...headers }, body: `${message}\n` };
}
