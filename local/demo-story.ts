import type { RunnerClock } from './clock-driven-runner.ts';
import {
  type DemoWorld,
  deleteAt,
  deleteService,
  deleteServicesIn,
  fillRange,
  leak,
  makeService,
  restoreCopy,
} from './demo-world.ts';

export interface StoryEvent {
  readonly atSeconds: number;
  readonly what: string;
  /** A returned text, such as an address, is printed after `what`. */
  readonly act: (world: DemoWorld) => Promise<unknown>;
  /** What the user should watch for next. */
  readonly outlook?: string;
}

const STOPPING = '192.0.2.3';

const SHOP = ['web-1', 'web-2', 'web-3', 'cart', 'search', 'stock'];

/**
 * Two minutes with an event for each task of the loops, far enough apart that each reaction is seen with its cause. At
 * the end none of its Services and addresses remains.
 */
export const STORY: readonly StoryEvent[] = [
  {
    atSeconds: 2,
    what: `${SHOP.length} Services of a shop are created`,
    act: async (world) => {
      for (const name of SHOP) await makeService(world, 'shop', name, name === 'cart' ? { type: 'NodePort' } : {});
    },
    outlook:
      'each takes an address from the table, and shop/cart also a node port: nothing is wrong, the loops are silent',
  },
  {
    atSeconds: 8,
    what: 'an API server takes an address and a port for a Service, and crashes before it stores the Service',
    act: async (world) => {
      const { address, port } = await leak(world);
      return `${address} and ${port} leak`;
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
    act: (world) => deleteAt(world, '/api/v1/namespaces/kube-node-lease'),
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
    act: async (world) => restoreCopy(world, 'shop', 'web-9', 'web-1'),
    outlook: 'within 15 s cluster-ip-repair finds the duplicate, and names the Service to recreate',
  },
  {
    atSeconds: 76,
    what: 'shop/web-9 is deleted, as the finding says',
    act: async (world) => {
      await deleteService(world, 'shop', 'web-9');
      return 'its address is released with it, although shop/web-1 still has it';
    },
    outlook: 'within 15 s cluster-ip-repair allocates it to shop/web-1 again',
  },
  {
    atSeconds: 92,
    what: 'a market opens: Services are created until no address is left',
    act: async (world) => {
      const { made, refusal } = await fillRange(world, 'market');
      return `${made} were created, the next was refused: ${refusal}`;
    },
    outlook: 'within 15 s cluster-ip-repair reports that the range is full, and what to do',
  },
  {
    atSeconds: 108,
    what: 'the market closes',
    act: async (world) => `${await deleteServicesIn(world, 'market')} Services are deleted`,
    outlook: 'within 15 s it is resolved',
  },
  {
    atSeconds: 124,
    what: 'the shop closes',
    act: async (world) => `${await deleteServicesIn(world, 'shop')} Services are deleted`,
    outlook: 'this was everything. The story begins again, half as fast, until Ctrl-C',
  },
];

const PAUSE_SECONDS = 8;

/** Slower after each event has been seen once. */
const LATER_PACE = 2;

export interface Stage {
  readonly world: DemoWorld;
  readonly clock: RunnerClock;
  /** Prints an event, or what to watch for. */
  readonly print: (sentence: string, kind: 'event' | 'outlook') => void;
}

/** Plays the story again and again until the signal aborts. An event that fails is reported, and the story continues. */
export async function playStory(
  story: readonly StoryEvent[],
  { world, clock, print }: Stage,
  signal: AbortSignal,
): Promise<void> {
  for (let pace = 1; !signal.aborted; pace = LATER_PACE) {
    const beganMs = clock.nowMs();
    for (const event of story) {
      await clock.sleepUntil(beganMs + event.atSeconds * 1000 * pace, signal);
      if (signal.aborted) return;
      print(await play(event, world), 'event');
      if (event.outlook !== undefined) print(event.outlook, 'outlook');
    }
    await clock.sleepUntil(clock.nowMs() + PAUSE_SECONDS * 1000, signal);
  }
}

async function play({ what, act }: StoryEvent, world: DemoWorld): Promise<string> {
  try {
    const facts = await act(world);
    return typeof facts === 'string' ? `${what}: ${facts}` : what;
  } catch (error) {
    // A user may have changed the cluster meanwhile.
    return `${what}: not done, ${error instanceof Error ? error.message : String(error)}`;
  }
}
