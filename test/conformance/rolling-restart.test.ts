import { writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { beforeAll, expect, test } from '@jest/globals';
import type { EventsV1Event } from '@kubernetes/client-node';
import { type KubeApiserver, startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { found } from '../support/found.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';
import { published } from '../support/kubernetes-service-objects.ts';
import { running } from '../support/running.ts';
import { freePort } from '../support/server-process.ts';
import { runningHandlers } from './running-control-plane.ts';

const TICK_MS = 10_000;
/** The longest time that an address stays published after its API server reported 'not ready' or was killed. */
const PUBLISHED_AT_MOST_MS = { 'not ready': TICK_MS, killed: 25_000 };
/** The address of the API server in the kubeconfig. */
const FIRST = '10.9.8.7';
/**
 * The address of this host, so that passes can connect to this API server too. A loopback address is not possible, because
 * Endpoints cannot contain one.
 */
const OWN = ownAddress();
const THIRD = '10.9.8.8';
const EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.kind=Service';

interface Outage {
  readonly kind: keyof typeof PUBLISHED_AT_MOST_MS;
  readonly sinceMs: number;
}

const servers = new Map<string, KubeApiserver>();
const outages = new Map<string, Outage>();
const history: string[] = [];
/** The time of the handlers. It does not depend on the duration of passes. */
let nowMs = Date.now();
let shown: readonly string[] = [];
const etcd = running(startEtcd);

beforeAll(async () => {
  const hosts = { [FIRST]: '127.0.0.1', [OWN]: OWN, [THIRD]: '127.0.0.2' };
  const port = await freePort(...Object.values(hosts));
  // During this delay an API server that shuts down still serves, and its /readyz reports the shutdown.
  const common = { etcd, port, extraArgs: ['--shutdown-delay-duration=60s'] };
  const starts = Object.entries(hosts).map(
    async ([advertiseAddress, bindAddress]) =>
      [advertiseAddress, await startKubeApiserver({ ...common, bindAddress, advertiseAddress })] as const,
  );
  for (const [address, server] of await Promise.all(starts)) servers.set(address, server);
  const { kubeconfigFile, url, token } = serverOf(FIRST);
  const ca = [...servers.values()].map((server) => server.ca).join('');
  const cluster = { 'tls-server-name': 'kubernetes.default.svc' };
  writeFileSync(kubeconfigFile, kubeconfigTo(url, { ca, cluster, user: { token } }));
});

const handlers = runningHandlers(() => {
  const { kubeconfigFile, port } = serverOf(FIRST);
  const apiServers = [...servers].map(([address, server]) => ({ address, probe: { url: `${server.url}/readyz` } }));
  return { kubeconfigFile, spec: { apiServers, service: { securePort: port } }, clock: () => nowMs };
});

const serverOf = (address: string) => found(servers.get(address));

/** Runs a pass, reads the endpoints from an API server that is up, and checks them. */
async function tick(): Promise<void> {
  nowMs += TICK_MS;
  expect(await handlers.run('kubernetes-service')).toMatchObject({ summary: { passes: 1, failed: 0 }, errors: [] });

  const up = [...servers.keys()].find((address) => !outages.has(address)) ?? '';
  const { endpoints, slice } = await published(serverOf(up));
  expect(endpoints.toSorted()).toEqual(slice.toSorted());
  expect({ history, isEmpty: endpoints.length === 0 }).toEqual({ history, isEmpty: false });
  history.push(...shown.filter((address) => !endpoints.includes(address)).map((address) => `removed ${address}`));
  history.push(...endpoints.filter((address) => !shown.includes(address)).map((address) => `added ${address}`));
  shown = endpoints;

  for (const [address, { kind, sinceMs }] of outages) {
    if (!shown.includes(address)) continue;
    // The address stays published at least until the next tick.
    const publishedMs = nowMs + TICK_MS - sinceMs;
    expect({ history, isTooLong: publishedMs > PUBLISHED_AT_MOST_MS[kind] }).toEqual({ history, isTooLong: false });
  }
}

/** Restarts an API server. It stops and starts right after a tick, so its lease was refreshed just before the stop. */
async function restart(address: string, kind: Outage['kind']): Promise<void> {
  const server = serverOf(address);
  outages.set(address, { kind, sinceMs: nowMs });
  history.push(`${kind}: ${address}`);
  if (kind === 'not ready') {
    await server.askToStop();
    await tick();
  }
  await server.kill();
  await tick();
  await tick();
  await server.restart();
  outages.delete(address);
  history.push(`restarted: ${address}`);
}

test('a rolling restart of three API servers never empties the endpoints, and dead addresses are removed within the documented time', async () => {
  await tick();
  expect(shown.toSorted()).toEqual([FIRST, OWN, THIRD].sort());
  history.length = 0;

  await restart(OWN, 'not ready');
  await restart(FIRST, 'not ready');
  await restart(THIRD, 'killed');
  await restart(FIRST, 'killed');
  await tick();

  expect(history).toEqual([
    ...[`not ready: ${OWN}`, `removed ${OWN}`, `restarted: ${OWN}`],
    ...[`not ready: ${FIRST}`, `removed ${FIRST}`, `added ${OWN}`, `restarted: ${FIRST}`],
    ...[`killed: ${THIRD}`, `added ${FIRST}`, `removed ${THIRD}`, `restarted: ${THIRD}`],
    ...[`killed: ${FIRST}`, `added ${THIRD}`, `removed ${FIRST}`, `restarted: ${FIRST}`],
    `added ${FIRST}`,
  ]);
  expect(shown.toSorted()).toEqual([FIRST, OWN, THIRD].sort());
  const { body } = await serverOf(FIRST).request<{ items: EventsV1Event[] }>('GET', EVENTS);
  // The repairs of the restarted API servers write events about the Service, too.
  const ours = body.items.filter(({ reportingController = '' }) => reportingController.endsWith('/kubernetes-service'));
  const notes = ours.map(({ type, reason, note = '' }) => `${type} ${reason} ${/[\d.]+/.exec(note)}`);
  expect([...new Set(notes)].sort()).toEqual(
    [FIRST, OWN, THIRD]
      .flatMap((address) => [`Normal ApiServerReturned ${address}`, `Warning ApiServerRemoved ${address}`])
      .sort(),
  );
});

/** Returns the bytes of the Endpoints and the EndpointSlice in etcd. */
function stored(): Promise<(Buffer | undefined)[]> {
  const keys = ['services/endpoints', 'endpointslices'].map((kind) => `/registry/${kind}/default/kubernetes`);
  return Promise.all(keys.map((key) => etcd.get(key)));
}

test('if every API server shuts down, the endpoints keep their addresses, and a finding contains the reason', async () => {
  const before = await stored();
  expect(before.map(String)).toEqual([expect.stringContaining(FIRST), expect.stringContaining(FIRST)]);
  await Promise.all([...servers.values()].map((server) => server.askToStop()));

  const { summary, findings, errors } = await handlers.run('kubernetes-service');

  expect(summary).toEqual({ passes: 1, failed: 1, skipped: 0 });
  const refusal =
    'no API server IP addresses were listed in storage, refusing to erase all endpoints for the kubernetes Service: ' +
    `${FIRST} answered 500: it is shutting down; `;
  expect(findings).toEqual([expect.stringContaining(`noLiveLease: ${refusal}`)]);
  expect(errors).toEqual([expect.stringContaining(`NoLiveLease: ${refusal}`)]);
  expect(await stored()).toEqual(before);
});

function ownAddress(): string {
  const own = Object.values(networkInterfaces())
    .flat()
    .find((each) => each?.family === 'IPv4' && !each.internal && !each.address.startsWith('169.254.'));
  if (own === undefined) throw new Error('this test needs an IPv4 address beside those of the loopback interface');
  return own.address;
}
