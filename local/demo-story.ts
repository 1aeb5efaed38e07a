import type { Loop } from '../lib/cluster/cluster-spec.ts';
import type { RunnerClock } from './clock-driven-runner.ts';
import {
  type DemoWorld,
  deleteEndpoints,
  deleteNamespace,
  deleteService,
  deleteServicesIn,
  fillRange,
  holdAddress,
  leak,
  makeService,
  restoreCopy,
} from './demo-world.ts';

/** One thing that happens. */
export interface Step {
  readonly atSeconds: number;
  readonly what: string;
  /** @returns what is only known once it is done, such as an address: it is told after `what`. */
  readonly do: (world: DemoWorld) => Promise<string | undefined>;
  /** What to look for then. */
  readonly outlook?: string;
  readonly reactions?: readonly Reaction[];
}

/** What a loop says because of it, and when at the latest. */
export interface Reaction {
  readonly loop: Loop;
  readonly says: RegExp;
  readonly withinSeconds: number;
}

/** Of the three API servers, the one that dies. */
const MORTAL = '192.0.2.3';

const SHOP = ['web-1', 'web-2', 'web-3', 'cart', 'search', 'stock'];

/**
 * Two minutes in which each thing happens that the loops are for, a little after one another, so that each reaction can
 * be seen to belong to its cause. Of what it makes, no Service and no address is left at its end.
 */
export const STORY: readonly Step[] = [
  {
    atSeconds: 2,
    what: `${SHOP.length} Services of a shop are made`,
    do: async (world) => {
      for (const name of SHOP) await makeService(world, 'shop', name, name === 'cart' ? { type: 'NodePort' } : {});
      return undefined;
    },
    outlook:
      'each took an address from the table, and shop/cart a node port too: all is as it should be, no loop says a word',
  },
  {
    atSeconds: 8,
    what: 'an API server takes an address and a port for a Service, and dies before it has stored that',
    do: async (world) => {
      const { address, port } = await leak(world);
      return `${address} and ${port} leak`;
    },
    outlook: 'within 15 s both are flagged, and at the third sighting, within 45 s, they are freed',
    reactions: [
      { loop: 'cluster-ip-repair', says: /found mayHaveLeaked: the cluster IP/, withinSeconds: 15 },
      { loop: 'node-port-repair', says: /found mayHaveLeaked: the node port/, withinSeconds: 15 },
      { loop: 'cluster-ip-repair', says: /1 freed as leaked/, withinSeconds: 45 },
      { loop: 'node-port-repair', says: /1 freed as leaked/, withinSeconds: 45 },
    ],
  },
  {
    atSeconds: 14,
    what: 'somebody deletes the Endpoints default/kubernetes',
    do: async (world) => {
      await deleteEndpoints(world);
      return undefined;
    },
    outlook: 'within 10 s kubernetes-service puts them back',
    reactions: [
      {
        loop: 'kubernetes-service',
        says: /created endpoints default\/kubernetes: 192\.0\.2\.1 192\.0\.2\.2 192\.0\.2\.3/,
        withinSeconds: 10,
      },
    ],
  },
  {
    atSeconds: 20,
    what: 'an address is held for billing, for 30 s and without a Service',
    do: (world) => holdAddress(world, 'billing', 30),
    outlook: 'that is no leak: nobody flags it, and when its time is over, within 50 s, it is freed',
    reactions: [
      { loop: 'cluster-ip-repair', says: /saved ranges\/serviceips: [^:]*, 1 held/, withinSeconds: 25 },
      { loop: 'cluster-ip-repair', says: /1 freed after their hold/, withinSeconds: 50 },
    ],
  },
  {
    atSeconds: 26,
    what: `the API server ${MORTAL} dies`,
    do: async ({ apiServers }) => {
      await apiServers.stop(MORTAL);
      return undefined;
    },
    outlook: 'when its lease has run out and two probes in a row were not answered, within 20 s, nobody is sent there',
    reactions: [
      {
        loop: 'kubernetes-service',
        says: /updated endpoints default\/kubernetes: 192\.0\.2\.1 192\.0\.2\.2$/,
        withinSeconds: 20,
      },
    ],
  },
  {
    atSeconds: 34,
    what: 'somebody deletes the namespace kube-node-lease',
    do: async (world) => {
      await deleteNamespace(world, 'kube-node-lease');
      return undefined;
    },
    outlook: 'within 15 s system-namespaces makes it anew',
    reactions: [{ loop: 'system-namespaces', says: /created namespace kube-node-lease/, withinSeconds: 15 }],
  },
  {
    atSeconds: 42,
    what: 'Services come and go: shop/web-3 is deleted, shop/gifts and shop/news are made',
    do: async (world) => {
      await deleteService(world, 'shop', 'web-3');
      for (const name of ['gifts', 'news']) await makeService(world, 'shop', name);
      return undefined;
    },
    outlook: 'addresses go back to the table and out again at once: no loop is needed for that',
  },
  {
    atSeconds: 50,
    what: `the API server ${MORTAL} is back`,
    do: async ({ apiServers }) => {
      await apiServers.start(MORTAL);
      return undefined;
    },
    outlook: 'at the next probe, within 10 s, it is published again',
    reactions: [
      { loop: 'kubernetes-service', says: /took lease 192\.0\.2\.3 again: answered 200/, withinSeconds: 10 },
      {
        loop: 'kubernetes-service',
        says: /updated endpoints default\/kubernetes: 192\.0\.2\.1 192\.0\.2\.2 192\.0\.2\.3/,
        withinSeconds: 10,
      },
    ],
  },
  {
    atSeconds: 58,
    what: 'shop/web-9 is restored from a backup, with the address of shop/web-1',
    do: async (world) => restoreCopy(world, 'shop', 'web-9', 'web-1'),
    outlook: 'within 15 s cluster-ip-repair finds the address in use twice, and says which Service to make anew',
    reactions: [
      {
        loop: 'cluster-ip-repair',
        says: /found duplicate: the cluster IP \[IPv4\]:10\.0\.0\.\d+ for service web-9\/shop was assigned to multiple services; please recreate/,
        withinSeconds: 15,
      },
    ],
  },
  {
    atSeconds: 76,
    what: 'shop/web-9 is deleted, as it said',
    do: async (world) => {
      await deleteService(world, 'shop', 'web-9');
      return 'its address went back with it, although shop/web-1 still has that';
    },
    outlook: 'within 15 s cluster-ip-repair enters it for shop/web-1 again',
    reactions: [
      {
        loop: 'cluster-ip-repair',
        says: /found repair: the cluster IP \[IPv4\]:10\.0\.0\.\d+ for service web-1\/shop is not allocated; repairing/,
        withinSeconds: 15,
      },
    ],
  },
  {
    atSeconds: 92,
    what: 'a market opens: one Service after the other is made, until no address is left',
    do: async (world) => {
      const { made, refusal } = await fillRange(world, 'market');
      return `${made} were made, the next was refused: ${refusal}`;
    },
    outlook: 'within 15 s cluster-ip-repair says that the range is full, and what to do',
    reactions: [
      {
        loop: 'cluster-ip-repair',
        says: /found nothingFree: nothing is left free in the service CIDR 10\.0\.0\.0\/26/,
        withinSeconds: 15,
      },
    ],
  },
  {
    atSeconds: 108,
    what: 'the market is over',
    do: async (world) => `${await deleteServicesIn(world, 'market')} Services are deleted`,
    outlook: 'within 15 s it is resolved',
    reactions: [{ loop: 'cluster-ip-repair', says: /resolved/, withinSeconds: 15 }],
  },
  {
    atSeconds: 124,
    what: 'the shop closes',
    do: async (world) => `${await deleteServicesIn(world, 'shop')} Services are deleted`,
    outlook: 'that was everything. It goes on from the beginning, half as fast, until Ctrl-C',
  },
];

/** Between the end of the story and its beginning. */
const PAUSE_SECONDS = 8;

/** The first time it is told as it is written; whoever still looks then has time. */
const LATER_PACE = 2;

export interface Stage {
  readonly world: DemoWorld;
  readonly clock: RunnerClock;
  /** Takes what happens, and what to look for, each as a sentence. */
  readonly tell: (sentence: string, kind: 'deed' | 'outlook') => void;
}

/** Plays the story again and again until the signal aborts. What cannot be done is told, and the story goes on. */
export async function playStory(
  story: readonly Step[],
  { world, clock, tell }: Stage,
  signal: AbortSignal,
): Promise<void> {
  for (let pace = 1; !signal.aborted; pace = LATER_PACE) {
    const beganMs = clock.nowMs();
    for (const step of story) {
      await clock.sleepUntil(beganMs + step.atSeconds * 1000 * pace, signal);
      if (signal.aborted) return;
      tell(await deed(step, world), 'deed');
      if (step.outlook !== undefined) tell(step.outlook, 'outlook');
    }
    await clock.sleepUntil(clock.nowMs() + PAUSE_SECONDS * 1000, signal);
  }
}

async function deed({ what, do: act }: Step, world: DemoWorld): Promise<string> {
  try {
    const facts = await act(world);
    return facts === undefined ? what : `${what}: ${facts}`;
  } catch (error) {
    // Somebody else may have changed the cluster meanwhile.
    return `${what}: not done, ${error instanceof Error ? error.message : String(error)}`;
  }
}
