import { randomUUID } from 'node:crypto';
import type { RunnerClock } from './clock-driven-runner.ts';
import type { EmbeddedKind, EmbeddedWorld } from './local-cluster.ts';
import { SERVICES } from './stand-in/resources.ts';
import { asService, type Given, type StoredServiceSpec } from './stand-in/service-storage.ts';

/** The cluster of the demo, with a range so small that a leak is visible, and repairs every 15 s instead of 180 s. */
export const DEMO: EmbeddedKind = {
  name: 'demo',
  addresses: ['192.0.2.1', '192.0.2.2', '192.0.2.3'],
  serviceClusterIPRange: '10.0.0.0/26',
  intervalSeconds: { 'system-namespaces': 15, 'cluster-ip-repair': 15, 'node-port-repair': 15 },
  notes: [
    '',
    'This is a demo: for a minute and a half events happen to this cluster, printed as "demo:", and the loops react.',
    'Faster than usual: system-namespaces and the repairs run every 15 s (elsewhere every 60 and 180 s).',
  ],
};

export interface StoryEvent {
  readonly atSeconds: number;
  readonly what: string;
  /** Causes the event. If `act` returns a text, such as an address, the text is printed after `what`. */
  readonly act: (world: EmbeddedWorld) => Promise<unknown>;
  /** The next effect that the user should watch for. */
  readonly outlook: string;
}

const STOPPING = '192.0.2.3';
const SHOP = '/api/v1/namespaces/shop/services';
const SERVICES_OF_SHOP: Readonly<Record<string, StoredServiceSpec>> = {
  'web-1': {},
  'web-2': {},
  search: {},
  cart: { type: 'NodePort' },
};

/** The events of the demo, far enough apart that the output shows each reaction of the loops after its cause. */
export const STORY: readonly StoryEvent[] = [
  {
    atSeconds: 2,
    what: `${Object.keys(SERVICES_OF_SHOP).length} Services of a shop are created`,
    act: async (world) => {
      await request(world, 'POST', '/api/v1/namespaces', { metadata: { name: 'shop' } });
      for (const [name, spec] of Object.entries(SERVICES_OF_SHOP)) {
        await request(world, 'POST', SHOP, { metadata: { name }, spec: { ports: [{ port: 80 }], ...spec } });
      }
    },
    outlook:
      'each takes an address from the table, and shop/cart also a node port: nothing is wrong, the loops are silent',
  },
  {
    atSeconds: 8,
    what: 'an API server takes an address and a port for a Service, and crashes before it stores the Service',
    act: async ({ allocation }) => {
      const address = allocated(await allocation.addresses.allocate(undefined));
      return `${address} and ${allocated(await allocation.ports.allocate(undefined))} leak`;
    },
    outlook: 'within 15 s both are reported; at the third sighting, within 45 s, they are freed',
  },
  {
    atSeconds: 26,
    what: `the API server ${STOPPING} stops`,
    act: ({ apiServers }) => apiServers.stop(STOPPING),
    outlook: 'when its lease has expired and two probes in a row have failed, within 20 s, its address is removed',
  },
  {
    atSeconds: 34,
    what: 'the namespace kube-node-lease is deleted',
    act: (world) => request(world, 'DELETE', '/api/v1/namespaces/kube-node-lease'),
    outlook: 'within 15 s system-namespaces creates it again',
  },
  {
    atSeconds: 50,
    what: `the API server ${STOPPING} returns`,
    act: ({ apiServers }) => apiServers.start(STOPPING),
    outlook: 'at the next probe, within 10 s, its address is published again',
  },
  {
    atSeconds: 58,
    what: 'shop/web-9 is restored from a backup, with the address of shop/web-1',
    act: async ({ standIn: { store } }) => {
      // The Service is stored without validation and without allocation.
      const service = asService(store.get(SERVICES, 'shop', 'web-1'));
      const { resourceVersion: _, ...metadata } = service.metadata;
      store.insert(SERVICES, { ...service, metadata: { ...metadata, name: 'web-9', uid: randomUUID() } });
      return service.spec.clusterIP;
    },
    outlook: 'within 15 s cluster-ip-repair finds the duplicate, and names the Service to recreate',
  },
  {
    atSeconds: 76,
    what: 'shop/web-9 is deleted, as the finding says, and its address is released, although shop/web-1 still has it',
    act: (world) => request(world, 'DELETE', `${SHOP}/web-9`),
    outlook: 'within 15 s cluster-ip-repair allocates it to shop/web-1 again. The loops run on until Ctrl-C',
  },
];

export interface Stage {
  readonly world: EmbeddedWorld;
  readonly clock: RunnerClock;
  readonly print: (event: string, outlook: string) => void;
}

/** Runs the events of the demo until the signal aborts. An event that fails is reported, and the demo continues. */
export async function playStory(
  story: readonly StoryEvent[],
  { world, clock, print }: Stage,
  signal: AbortSignal,
): Promise<void> {
  const beganMs = clock.nowMs();
  for (const { atSeconds, what, act, outlook } of story) {
    await clock.sleepUntil(beganMs + atSeconds * 1000, signal);
    if (signal.aborted) return;
    // The event may fail, because a user may have changed the cluster meanwhile.
    const fact = await act(world).catch(
      (error: unknown) => `not done, ${error instanceof Error ? error.message : error}`,
    );
    print(typeof fact === 'string' ? `${what}: ${fact}` : what, outlook);
  }
}

function allocated(result: Given): string {
  if ('item' in result) return result.item;
  throw new Error(result.message);
}

async function request({ standIn }: EmbeddedWorld, method: string, path: string, body: object = {}): Promise<void> {
  const headers = { 'user-agent': 'a-user' };
  const reply = await standIn.handle({ method, path, headers, body: JSON.stringify(body) });
  if (reply.status >= 300) throw new Error((JSON.parse(reply.body) as { readonly message: string }).message);
}
