import { nearestName } from '../../lib/cluster/values.ts';
import type { ClusterStatus, FleetStatus } from '../../lib/status/cluster-status.ts';
import { contentSecurityPolicy, type PageOptions } from './page-frame.ts';
import { renderClusterPage, renderMessagePage } from './render-cluster-page.ts';
import { renderFleetPage } from './render-fleet-page.ts';
import type { Known } from './shared-read.ts';

export interface PageRequest {
  readonly method: string;
  /** Path with query. */
  readonly url: string;
  readonly host: string | undefined;
  readonly origin: string | undefined;
}

export interface PageReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Where a reply gets what it shows from. */
export interface PageSources {
  readonly fleet: () => Promise<Known<FleetStatus>>;
  /** `undefined`: there is no such cluster. */
  readonly cluster: (name: string) => Promise<Known<ClusterStatus | undefined>>;
  readonly pollMs: number;
  readonly port: number;
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

/** Two pages, for this machine's own browsers: whatever else is asked for changes nothing and learns nothing. */
export async function answerPageRequest(request: PageRequest, sources: PageSources): Promise<PageReply> {
  if (!isOurHost(request.host, sources.port))
    return refusal(421, 'This page is for this machine alone: open it at its 127.0.0.1 address.');
  if (request.origin !== undefined) return refusal(403, 'This page is for no other page to read.');
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    const refused = refusal(405, 'Nothing on this page can be changed.');
    return { ...refused, headers: { ...refused.headers, allow: 'GET, HEAD' } };
  }
  const reply = await pageAt(pathOf(request.url), sources);
  return request.method === 'HEAD' ? { ...reply, body: '' } : reply;
}

async function pageAt(path: string | undefined, sources: PageSources): Promise<PageReply> {
  if (path === '/') return fleetPage(sources);
  const name = path !== undefined && /^\/clusters\/([^/]+)$/.exec(path)?.[1];
  return name ? clusterPage(name, sources) : refusal(404, 'There is no such page. All clusters are at /.');
}

async function fleetPage(sources: PageSources): Promise<PageReply> {
  const known = await sources.fleet();
  const options = optionsOf(sources, known);
  if (known.value === undefined)
    return shown(503, renderMessagePage('Clusters', 'Nothing has been read yet.', options));
  return shown(200, renderFleetPage(known.value.of, options));
}

async function clusterPage(name: string, sources: PageSources): Promise<PageReply> {
  const known = await sources.cluster(name);
  const options = optionsOf(sources, known);
  if (known.value === undefined) return shown(503, renderMessagePage(name, 'Nothing has been read yet.', options));
  const { of: cluster, atMs } = known.value;
  if (cluster === undefined) return shown(404, await unknownCluster(name, sources, options));
  return shown(200, renderClusterPage(cluster, { ...options, atMs }));
}

async function unknownCluster(name: string, { fleet }: PageSources, options: PageOptions): Promise<string> {
  const names = (await fleet()).value?.of.clusters.map((cluster) => cluster.name) ?? [];
  const nearest = nearestName(name, names);
  const meant = nearest === undefined ? '' : ` Is it ${nearest} that you mean?`;
  return renderMessagePage(name, `The table has no cluster of this name.${meant}`, options);
}

function optionsOf({ pollMs }: PageSources, { trouble }: Known<unknown>): PageOptions {
  return { live: { pollMs }, ...(trouble && { trouble }) };
}

/** Another host name that leads here is somebody's who wants to read the page through a browser (DNS rebinding). */
function isOurHost(host: string | undefined, port: number): boolean {
  const names = ['127.0.0.1', 'localhost', '[::1]'];
  return names.some((name) => host?.toLowerCase() === `${name}:${port}` || (port === 80 && host === name));
}

function pathOf(url: string): string | undefined {
  try {
    return decodeURIComponent(new URL(url, 'http://page').pathname);
  } catch {
    return undefined;
  }
}

function shown(status: number, body: string): PageReply {
  return { status, headers: HEADERS, body };
}

function refusal(status: number, message: string): PageReply {
  return { status, headers: { ...HEADERS, 'content-type': 'text/plain; charset=utf-8' }, body: `${message}\n` };
}
