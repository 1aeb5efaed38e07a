import { expect, test } from '@jest/globals';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { claimCluster } from '../../lib/table/clusters.ts';
import { startApiServers } from '../../local/stand-in/api-servers.ts';
import { ENDPOINTS } from '../../local/stand-in/resources.ts';
import type { ServiceAllocator } from '../../local/stand-in/service-storage.ts';
import { specIn } from '../support/a-cluster-spec.ts';
import { anEndpoints } from '../support/an-endpoints.ts';
import { commandsOf, type FencedBlock, fencedBlocks, isWhatIsPrinted } from '../support/console-blocks.ts';
import { CLUSTER, openKbctlWorld } from '../support/kbctl-world.ts';
import { readInRepository } from '../support/repository.ts';
import { running } from '../support/running.ts';
import { IDENTITY } from '../support/stand-in.ts';
import { runningTableServer } from '../support/test-dynamo-client.ts';

export type Action = (world: TaskWorld) => unknown;

export interface Story {
  /** Puts the cluster into the state at the beginning of the page. */
  readonly begins: Action;
  /** The effects of lines that the test does not run, such as `kubectl` and flags of API servers. */
  readonly elsewhere?: Readonly<Record<string, Action>>;
  /** The events after a command, by the command. */
  readonly after?: Readonly<Record<string, Action>>;
  /** The random part of a command's output, by the command. */
  readonly random?: Readonly<Record<string, RegExp>>;
}

/** Defines the tests of a page with a story. */
export function testPage(page: string, story: Story): void {
  const text = readInRepository(page);
  const server = runningTableServer();
  const world = running(async () => {
    const opened = await openTaskWorld(server.endpoint);
    await story.begins(opened);
    return opened;
  });

  test('every command on the page prints the output that the page shows', async () => {
    const blocks = fencedBlocks(text);
    expect(blocks).not.toEqual([]);
    for (const block of blocks) {
      if (block.language === 'console') await run(page, block, story, world);
      else if (block.language === 'text') await act(page, block, story, world);
    }
  });

  test('the page contains every command of its test script', () => {
    const commands = Object.keys({ ...story.elsewhere, ...story.after, ...story.random });
    expect(commands.filter((command) => !text.includes(command))).toEqual([]);
  });
}

async function run(page: string, { line, lines }: FencedBlock, story: Story, world: TaskWorld): Promise<void> {
  for (const { at, command, output } of commandsOf(page, line, lines)) {
    const ran = await world.run(command);
    const random = story.random?.[command];
    const known = (text: string) => (random === undefined ? text : text.replace(random, 'random'));
    const isAsShown = ran.code <= 1 && isWhatIsPrinted(known(ran.output), output.map(known));
    expect({ at, command, ...(!isAsShown && { ...ran, expected: output.join('\n') }) }).toEqual({ at, command });
    await story.after?.[command]?.(world);
  }
}

async function act(page: string, { line, lines }: FencedBlock, { elsewhere }: Story, world: TaskWorld): Promise<void> {
  for (const command of lines) {
    const action = elsewhere?.[command];
    expect({ at: `${page}:${line}`, command, isKnown: action !== undefined }).toMatchObject({ isKnown: true });
    await action?.(world);
  }
}

const ADDRESSES = ['203.0.113.10', '203.0.113.11', '203.0.113.12'] as const;
/** The address of an API server that replaces another one. The server runs from the beginning. */
const NEW_ADDRESS = '203.0.113.13';
const STACK = 'kube-bootstrap-controller-prod';
/** A time longer than the leases of the cluster. */
const LONG_AGO_MS = 700_000;

/** The commands of the pages: no pipe, variable or quotes, so that they need no shell. */
const PLAIN_KBCTL = /^kbctl [\w ./:,@=-]+$/;

const ENDPOINTS_LIST = '/api/v1/namespaces/default/endpoints';
const ENDPOINTS_PATH = `${ENDPOINTS_LIST}/kubernetes`;

export type TaskWorld = Awaited<ReturnType<typeof openTaskWorld>>;

/** Opens a control plane for the events and the commands of a page. */
async function openTaskWorld(endpoint: string) {
  const world = await openKbctlWorld(endpoint);
  const { standIn, table } = world;
  const apiServers = await startApiServers(standIn, IDENTITY, [...ADDRESSES, NEW_ADDRESS]);
  const listed = (...addresses: string[]) =>
    addresses.map((address) => ({ address, probe: { url: `${apiServers.urlOf(address)}/readyz` } }));
  const usual = { allocator: 'apiserver', apiServers: listed(...ADDRESSES) };
  const specText = (fields: object) => world.spec({ ...usual, ...fields });
  /** Writes `prod-eu-1.yml` with these fields and the default values of the others. */
  const writeSpec = (fields: object = {}): void => {
    world.file('prod-eu-1.yml', specText(fields));
  };
  /** Sends a request to the API server. @throws Error if it is refused */
  const call = async (method: string, path: string, body?: object, manager = 'kubectl') => {
    const text = body === undefined ? {} : { body: JSON.stringify(body) };
    const headers = { 'user-agent': manager };
    const reply = await standIn.handle({ method, path, headers, ...text });
    if (reply.status >= 300) throw new Error(`${method} ${path} was answered ${reply.status}: ${reply.body}`);
  };
  world.allocateBy(ownAllocation());
  return {
    standIn,
    table,
    allocateBy: world.allocateBy,
    tableAllocation: world.tableAllocation,
    apiServers,
    listed,
    writeSpec,
    call,
    /** Runs every loop, with a clock that is `agoMs` behind. */
    tick: (agoMs = 0) => world.runAllLoops({ agoMs, stack: STACK }),
    /** Writes the spec, registers it, and runs every loop in the past, so that the leases have expired now. */
    async begin(fields: object = {}) {
      writeSpec(fields);
      await registerCluster(table, specIn(specText(fields)));
      await claimCluster(table, CLUSTER, STACK);
      await world.runAllLoops({ agoMs: LONG_AGO_MS, stack: STACK });
      await call('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } });
    },
    /** Deletes all items of the cluster and its Endpoints, as if it had never been registered. */
    async forget() {
      const items = [...(await table.list(CLUSTER, '')), ...(await table.list('#clusters', ''))];
      for (const item of items) await world.removeItem(item);
      await call('DELETE', ENDPOINTS_PATH);
    },
    /** Runs every loop twice, so that a server that is down misses two probes. */
    async wait() {
      for (const agoMs of [10_000, 0]) await world.runAllLoops({ agoMs, stack: STACK });
    },
    /** Stores a Service as a restored backup does, without validation and allocation. */
    restoreService: world.restore,
    /** Creates or overwrites the Endpoints as another client with these addresses. */
    async publish(manager: string, addresses: readonly string[]) {
      const body = anEndpoints(addresses);
      const isThere = standIn.store.find(ENDPOINTS, 'default', 'kubernetes') !== undefined;
      await (isThere ? call('PUT', ENDPOINTS_PATH, body, manager) : call('POST', ENDPOINTS_LIST, body, manager));
    },
    /** Runs a `kbctl` command. Returns the code and never throws. */
    async run(command: string) {
      expect(command).toMatch(PLAIN_KBCTL);
      const [, ...words] = command.trim().split(/ +/);
      const running = world.start(words);
      const { code } = await running.end();
      return { code: code ?? -1, output: running.output() };
    },
    async close() {
      await apiServers.close();
      await world.close();
    },
  };
}

/** Returns an allocator like that of API servers. Every item is free, and the results are the same in each run. */
function ownAllocation(): ServiceAllocator {
  let next = 20;
  const release = async () => undefined;
  return {
    addresses: { allocate: async (address) => ({ item: address ?? `10.0.0.${next++}` }), release },
    ports: { allocate: async (port) => ({ item: port ?? String(30_100 + next++) }), release },
  };
}
