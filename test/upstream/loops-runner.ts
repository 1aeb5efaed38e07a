import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseAddress } from '../../lib/allocator/ip-address.ts';
import { networkContains, parseCidr } from '../../lib/allocator/network.ts';
import { LOOPS, type Loop } from '../../lib/spec/cluster-spec.ts';
import { etcdClient } from '../support/etcd-client.ts';
import { type Handlers, startHandlers } from '../support/handlers.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';
import { poster, serveTableWebhook } from './table-webhook.ts';

/** An API server, as `announce.go.txt` writes it. */
interface AnnouncedServer {
  readonly Etcd: string;
  readonly Prefix: string;
  readonly Address: string;
  readonly Port: number;
  readonly Token: string;
  readonly CA: string;
  readonly ServiceRanges: readonly string[];
  readonly NodePortRange: string;
  readonly ServicePort: number;
  readonly NodePort: number;
}

/** The API servers on one etcd prefix, and the loops that run for them. */
interface RunningCluster {
  readonly servers: Map<string, AnnouncedServer>;
  readonly kubeconfigFile: string;
  readonly handlers: Handlers;
  /** When each loop runs next. */
  readonly dueAtMs: Map<Loop, number>;
  endWebhook?: () => Promise<void>;
}

/** `table`: Services get their addresses and ports from the table, through the webhook. */
export type Allocator = 'apiserver' | 'table';

/** The loops run this often, because the tests wait for seconds. */
const EVERY_MS: Readonly<Record<Loop, number>> = {
  'system-namespaces': 1_000,
  'kubernetes-service': 1_000,
  'cluster-ip-repair': 3_000,
  'node-port-repair': 3_000,
};
/** The server name of the certificate that every API server serves to its own clients. */
const LOOPBACK_NAME = 'apiserver-loopback-client';

export type Log = (line: string) => void;

/** Runs the four loops for the API servers that are announced in a folder, until the signal aborts. */
export async function runLoops(
  folder: string,
  { allocator, log, signal }: { readonly allocator: Allocator; readonly log: Log; readonly signal: AbortSignal },
): Promise<void> {
  const clusters = new Map<string, RunningCluster>();
  try {
    while (!signal.aborted) {
      for (const id of idsIn(folder)) await followServer({ folder, id, clusters, allocator, log });
      for (const cluster of clusters.values()) await runDue(cluster, log);
      await sleep(100);
    }
  } finally {
    for (const { handlers, endWebhook } of clusters.values()) {
      await endWebhook?.();
      await handlers.close();
    }
  }
}

async function runDue(cluster: RunningCluster, log: Log): Promise<void> {
  for (const loop of LOOPS) {
    if ((cluster.dueAtMs.get(loop) ?? 0) > Date.now() || cluster.servers.size === 0) continue;
    await runLoop(cluster, loop, log);
    cluster.dueAtMs.set(loop, Date.now() + EVERY_MS[loop]);
  }
}

const idsIn = (folder: string) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => name.slice(0, -'.json'.length));

interface Following {
  readonly folder: string;
  readonly id: string;
  readonly clusters: Map<string, RunningCluster>;
  readonly allocator: Allocator;
  readonly log: Log;
}

/** Adds a new API server to its cluster, or removes one that stops, and writes the file that the server waits for. */
async function followServer({ folder, id, clusters, allocator, log }: Following): Promise<void> {
  const file = (suffix: string) => join(folder, `${id}.${suffix}`);
  if (existsSync(file('stopped'))) return;
  const server: AnnouncedServer = JSON.parse(readFileSync(file('json'), 'utf8'));
  if (!existsSync(file('started'))) {
    const cluster = await joinCluster(server, { folder, id, clusters, allocator });
    log(`API server ${server.Address} of ${server.Prefix} starts`);
    for (const loop of LOOPS) await runLoop(cluster, loop, log);
    if (allocator === 'table') {
      const ca = Buffer.from(server.CA, 'base64').toString();
      const post = poster({ port: server.Port, ca, token: server.Token, servername: LOOPBACK_NAME });
      cluster.endWebhook ??= await serveTableWebhook(cluster.handlers.table, post);
    }
    writeFileSync(file('started'), '');
  }
  const cluster = clusters.get(server.Prefix);
  if (cluster === undefined || !existsSync(file('stopping'))) return;
  log(`API server ${server.Address} of ${server.Prefix} stops`);
  log(`  deregister: ${JSON.stringify(await cluster.handlers.deregister(publishedAddress(server)))}`);
  cluster.servers.delete(id);
  if (cluster.servers.size > 0) await follow(cluster, allocator);
  writeFileSync(file('stopped'), '');
}

async function joinCluster(
  server: AnnouncedServer,
  { folder, id, clusters, allocator }: Omit<Following, 'log'>,
): Promise<RunningCluster> {
  const known = clusters.get(server.Prefix);
  if (known !== undefined) {
    known.servers.set(id, server);
    await follow(known, allocator);
    return known;
  }
  await initialiseBitmaps(server);
  const kubeconfigFile = join(folder, `${clusters.size}.kubeconfig`);
  const servers = new Map([[id, server]]);
  writeKubeconfig(kubeconfigFile, servers);
  const handlers = await startHandlers({ kubeconfigFile, spec: specOf(servers, allocator) });
  const cluster: RunningCluster = { servers, kubeconfigFile, handlers, dueAtMs: new Map() };
  clusters.set(server.Prefix, cluster);
  return cluster;
}

/** Writes empty bitmaps, without which a stock API server allocates no node port, and no cluster IP before Kubernetes 1.33. */
async function initialiseBitmaps({ Etcd, Prefix, ServiceRanges, NodePortRange }: AnnouncedServer): Promise<void> {
  const etcd = etcdClient(Etcd);
  const [first, second] = ServiceRanges;
  const ranges = { serviceips: first, secondaryserviceips: second, servicenodeports: NodePortRange };
  for (const [name, range] of Object.entries(ranges)) {
    const allocation = { apiVersion: 'v1', kind: 'RangeAllocation', metadata: {}, range, data: '' };
    if (range !== undefined) await etcd.put(`/${Prefix}/ranges/${name}`, allocation);
  }
}

/** Changes the kubeconfig and the spec of a cluster to the API servers that it has now. */
async function follow({ servers, kubeconfigFile, handlers }: RunningCluster, allocator: Allocator): Promise<void> {
  writeKubeconfig(kubeconfigFile, servers);
  await handlers.register(specOf(servers, allocator));
}

function writeKubeconfig(file: string, servers: ReadonlyMap<string, AnnouncedServer>): void {
  const all = [...servers.values()];
  const newest = lastOf(all);
  const ca = all.map(({ CA }) => Buffer.from(CA, 'base64').toString()).join('');
  const text = kubeconfigTo(`https://127.0.0.1:${newest.Port}`, {
    ca,
    cluster: { 'tls-server-name': LOOPBACK_NAME },
    user: { token: newest.Token },
  });
  writeFileSync(file, text, { mode: 0o600 });
}

function specOf(servers: ReadonlyMap<string, AnnouncedServer>, allocator: Allocator): object {
  const all = [...servers.values()];
  const newest = lastOf(all);
  const published = new Map(all.map((server) => [publishedAddress(server), server]));
  return {
    apiServers: [...published].map(([address, { Port }]) => ({
      address,
      probe: { url: `https://127.0.0.1:${Port}/readyz`, serverName: LOOPBACK_NAME },
    })),
    serviceClusterIPRange: newest.ServiceRanges,
    serviceNodePortRange: newest.NodePortRange,
    service: { port: newest.ServicePort, securePort: newest.Port, nodePort: newest.NodePort },
    allocator,
    repair: { ipAddresses: allocator === 'apiserver' },
  };
}

/** Returns the address of an API server, or an address for documentation if a spec may not have that of the server. */
function publishedAddress({ Address, ServiceRanges }: AnnouncedServer): string {
  const isRefused = isLoopback(Address) || ServiceRanges.some((range) => isInRange(Address, range));
  if (!isRefused) return Address;
  return Address.includes(':') ? '2001:db8:ffff::1' : '192.0.2.1';
}

function isLoopback(address: string): boolean {
  return address.startsWith('127.') || address === '::1';
}

function isInRange(text: string, range: string): boolean {
  const network = parseCidr(range);
  const address = parseAddress(text);
  return network !== undefined && address !== undefined && networkContains(network, address);
}

function lastOf(servers: readonly AnnouncedServer[]): AnnouncedServer {
  const last = servers.at(-1);
  if (last === undefined) throw new Error('a cluster without API servers');
  return last;
}

async function runLoop(cluster: RunningCluster, loop: Loop, log: Log): Promise<void> {
  const { changes, findings, errors } = await cluster.handlers.run(loop);
  for (const [kind, lines] of Object.entries({ changes, findings, errors })) {
    for (const line of lines) log(`  ${loop} ${kind}: ${line}`);
  }
}
