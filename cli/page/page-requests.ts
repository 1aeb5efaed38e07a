import type { IncomingMessage } from 'node:http';
import { describeError } from '../../lib/telemetry/telemetry.ts';
import { attempt } from '../../lib/util/values.ts';
import { isSame } from '../../local/local-request.ts';
import type { LocalReply } from '../../local/loopback-server.ts';
import type { FleetStatus } from '../status/cluster-status.ts';
import { contentSecurityPolicy } from './page-frame.ts';
import { renderClusterPage, renderFleetPage } from './render-pages.ts';

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

/** Answers requests of browsers and scrapers on this machine, if they contain the key. No request changes anything. */
export async function answerPageRequest(request: PageRequest, sources: PageSources): Promise<LocalReply> {
  if (!isOurHost(request.headers.host, sources.port))
    return refusal(421, 'This page is only for this machine: open it at its 127.0.0.1 address.');
  if (request.headers.origin !== undefined) return refusal(403, 'Other pages cannot read this page.');
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    const refused = refusal(405, 'This page is read-only.');
    return { ...refused, headers: { ...refused.headers, allow: 'GET, HEAD' } };
  }
  const path = pathWithKey(request, sources);
  if (path === '') {
    // Links of the page are relative, so its address ends with a slash.
    const moved = refusal(308, 'The address of the page ends with a slash.');
    return { ...moved, headers: { ...moved.headers, location: `/${sources.key}/` } };
  }
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
  if (path === '/metrics') return metrics(await sources.read());
  const [, name] = /^\/clusters\/([^/]+)$/.exec(path ?? '') ?? [];
  if (name === undefined) return refusal(404, 'Not found. All clusters are at the link that kbctl printed.');
  const { clusters, atMs } = await sources.read(name);
  if (clusters[0] === undefined) return refusal(404, 'The table has no cluster of this name.');
  return shown(renderClusterPage(clusters[0], { ...options, atMs }));
}

async function metrics(fleet: FleetStatus): Promise<LocalReply> {
  const { fleetMetrics } = await import('./fleet-metrics.ts');
  const { contentType, text } = await fleetMetrics(fleet);
  return { status: 200, headers: { ...HEADERS, 'content-type': contentType }, body: text };
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

function refusal(status: number, message: string): LocalReply {
  return { status, headers: { ...HEADERS, 'content-type': 'text/plain; charset=utf-8' }, body: `${message}\n` };
}
