import { randomInt, randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DeleteItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeEach, expect } from '@jest/globals';
import { addressesIn, type EndpointsObject } from '../../lib/cluster/published-objects.ts';
import { loadKubeconfigFile } from '../../lib/kubernetes/kubeconfig.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { keyOf } from '../../lib/table/dynamodb/dynamodb-items.ts';
import { dynamoDbTable } from '../../lib/table/dynamodb/dynamodb-table.ts';
import type { Item } from '../../lib/table/key-value-table.ts';
import { LOOP_HANDLERS } from '../../local/clock-driven-runner.ts';
import { localEnvironment } from '../../local/local-environment.ts';
import { listen } from '../../local/stand-in/api-servers.ts';
import { kubeconfigOf } from '../../local/stand-in/identity.ts';
import { ENDPOINTS, SERVICES } from '../../local/stand-in/resources.ts';
import type { ServiceAllocator } from '../../local/stand-in/service-storage.ts';
import { StandInApiServer } from '../../local/stand-in/stand-in-api-server.ts';
import { tableAllocation } from '../../local/stand-in/table-allocation.ts';
import { createTable } from '../../local/table-client.ts';
import { startCallRecorder } from '../deploy/emulator-calls.ts';
import { specIn } from './a-cluster-spec.ts';
import { afterThisTest } from './after-this-test.ts';
import { REGION } from './emulator-aws.ts';
import { notGranted, shippedPolicy } from './emulator-policy.ts';
import { emulatedAws } from './emulator-project.ts';
import { startFaultProxy } from './fault-proxy.ts';
import { beginKbctl, callKbctl } from './kbctl-in-process.ts';
import { type Ran, startKbctl } from './kbctl-process.ts';
import { kubeconfigTo } from './kubeconfig-to.ts';
import { recordingTelemetry } from './recording-telemetry.ts';
import { running } from './running.ts';
import { startSilentServer } from './silent-server.ts';
import { IDENTITY } from './stand-in.ts';
import { stockService } from './stock-objects.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { runningTableServer, testDynamoClient } from './test-dynamo-client.ts';

export const CLUSTER = 'prod-eu-1';
const TABLE_NAME = 'kube-bootstrap-controller-test';
const CIDR = '10.0.0.0/24';
const NODE_PORTS = '30000-32767';

export type KbctlWorld = Awaited<ReturnType<typeof openKbctlWorld>>;

export interface PassesOptions {
  /** The time by which the clock of the passes is behind. Default: 0. */
  readonly agoMs?: number;
  /** The stack of the passes. Default: that of a developer's machine. */
  readonly stack?: string;
}

export interface WorldOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string | Uint8Array;
  /** The time by which the clock of the host is ahead, for `kbctl` in this process. */
  readonly aheadMs?: number;
}

/**
 * Opens a table in the stand-in for AWS, a stand-in API server, and a folder with files for commands.
 * @param endpoint the endpoint of dynalite or of a proxy before it
 */
export async function openKbctlWorld(endpoint: string) {
  const folder = temporaryFolder();
  const tableName = `${TABLE_NAME}-${randomUUID()}`;
  const client = testDynamoClient(endpoint, { region: REGION });
  await createTable(client, tableName);
  const deadline = new AbortController().signal;
  const table = dynamoDbTable({ client, tableName, deadline, nowMs: Date.now, newWriteId: randomUUID });
  const ownAllocation = tableAllocation(table, CLUSTER, randomInt, Date.now);
  const allocation: ServiceAllocator = { ...ownAllocation };
  const standIn = new StandInApiServer(allocation, Date.now);
  const listening = await listen(standIn, IDENTITY);
  const file = (name: string, content: string | Uint8Array) => {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return path;
  };
  /** Returns the text of a spec whose kubeconfig names the stand-in API server, with the given fields changed. */
  const spec = (fields: object = {}) => specText(kubeconfigFile, listening.url, fields);
  const kubeconfigFile = file('kubeconfig', kubeconfigOf(CLUSTER, listening.url, IDENTITY));
  const wordsOf = (words: readonly string[]) => (words.includes('--table') ? words : [...words, '--table', tableName]);
  const optionsOf = ({ env = {}, stdin, aheadMs = 0 }: WorldOptions) => ({
    cwd: folder,
    env: { ...emulatedAws(endpoint, 'test'), ...env },
    aheadMs,
    ...(stdin !== undefined && { stdin }),
  });
  const loadKubeconfig = () => loadKubeconfigFile(kubeconfigFile);
  const local = localEnvironment({ client, loadKubeconfig, telemetry: recordingTelemetry });
  const environmentOf = ({ stack }: PassesOptions, nowMs: () => number) => ({
    ...local.environment,
    ...(stack !== undefined && { stack }),
    nowMs,
    table: (signal: AbortSignal) =>
      dynamoDbTable({ client, tableName, deadline: signal, nowMs, newWriteId: randomUUID }),
  });
  /** Starts a command and does not wait for its end. No other command runs in this process meanwhile. */
  const start = (words: readonly string[], options: WorldOptions = {}) =>
    beginKbctl(wordsOf(words), optionsOf(options));
  return {
    table,
    tableName,
    removeItem: (item: Item) => client.send(new DeleteItemCommand({ TableName: tableName, Key: keyOf(item) })),
    endpoint,
    standIn,
    server: listening.url,
    folder,
    kubeconfigFile,
    tableAllocation: ownAllocation,
    /** Sets the allocator of Services from now on, as a restart of the API server with other flags does. */
    allocateBy: (other: ServiceAllocator) => void Object.assign(allocation, other),
    /** Stores a Service of the namespace shop without any request to the API server, as a restored backup does. */
    restore: (name: string, clusterIP: string) => void standIn.store.insert(SERVICES, restoredService(name, clusterIP)),
    runAllLoops: async (options: PassesOptions = {}) => {
      const environment = environmentOf(options, () => Date.now() - (options.agoMs ?? 0));
      for (const handler of Object.values(LOOP_HANDLERS)) {
        await handler({ force: true }, { environment, getRemainingTimeInMillis: () => 60_000 });
      }
    },
    spec,
    register: (fields?: object) => registerCluster(table, specIn(spec(fields))),
    published: () => addressesIn(standIn.store.get(ENDPOINTS, 'default', 'kubernetes') as unknown as EndpointsObject),
    /** Writes a kubeconfig with an API server that does not answer. @returns the path of the file */
    unreachableCluster: () => file('unreachable', kubeconfigTo('http://127.0.0.1:1')),
    /** Writes a file into the folder. @returns its path. */
    file,
    /** Runs a command in this process, in the folder. It uses this world's table unless the arguments contain `--table`. */
    kbctl: (words: readonly string[], options: WorldOptions = {}) => callKbctl(wordsOf(words), optionsOf(options)),
    start,
    interruptWhileSilent: async (words: readonly string[]) => {
      const silent = await startSilentServer();
      try {
        const kubeconfig = file('silent', kubeconfigTo(`http://${silent.authority}`));
        const running = start([...words, '--kubeconfig', kubeconfig]);
        await running.untilItPrints(/prod-eu-1: http/);
        return await running.end('SIGINT');
      } finally {
        await silent.close();
      }
    },
    /** Starts a proxy before the table until the end of the test. A command with the environment `env` calls the table through it. */
    startProxy: async () => {
      const proxy = await startFaultProxy(endpoint);
      afterThisTest(proxy.close);
      return { ...proxy, env: { AWS_ENDPOINT_URL: proxy.endpoint } };
    },
    /** Starts a command in its own process, for tests of signals and broken pipes. */
    spawn: (words: readonly string[], options: WorldOptions = {}) => startKbctl(wordsOf(words), optionsOf(options)),
    close: async () => {
      await local.close();
      await listening.close();
      client.destroy();
    },
  };
}

type Prepare = (world: KbctlWorld) => Promise<unknown>;

/**
 * Starts a table server for the tests of a file. Returns functions that open worlds for a group of tests: each returns a function
 * that returns the world during a test. After the tests, expects that the policy of operators grants every call of kbctl.
 */
export function kbctlWorlds() {
  const server = runningTableServer();
  const recorder = running(() => startCallRecorder(server.endpoint, { host: new URL(server.endpoint).host }));
  afterAll(() => {
    // The tests create their tables themselves, and some name a table that does not exist.
    const made = recorder.calls.filter(({ action, resource }) => !/CreateTable|no-such-table/.test(action + resource));
    expect(made.length).toBeGreaterThan(0);
    expect(notGranted(made, shippedPolicy('operator').Statement)).toEqual([]);
  });
  const opened = async (prepare: Prepare = async () => {}) => {
    const world = await openKbctlWorld(recorder.endpoint);
    await prepare(world);
    return world;
  };
  return {
    /** Opens a new world for each test. */
    each: (prepare?: Prepare) => {
      let world: KbctlWorld;
      beforeEach(async () => {
        world = await opened(prepare);
        afterThisTest(world.close);
      });
      return () => world;
    },
    /** Opens one world for all tests of the group. None of them may change what another one reads. */
    shared: (prepare?: Prepare) => {
      const world = running(() => opened(prepare));
      return () => world;
    },
  };
}

/** Registers the cluster. */
export const registered: Prepare = (world) => world.register();

/** Registers the cluster, and runs each loop once. */
export const passed: Prepare = async (world) => {
  await world.register();
  await world.runAllLoops();
};

/** Returns the expected result of a command. Each text can be a string or a matcher of jest. */
export function ran(code: number, stdout: unknown, stderr: unknown = '') {
  return { code, stdout, stderr };
}

/** Expects that a command ends with this code and without output, and that its error contains the text. */
export function failed(code: number, text: string) {
  return { code, stdout: '', stderr: expect.stringContaining(text) };
}

/** Expects that a command ended with this code and printed each of the texts. */
export function expectPrinted({ code, stdout }: Ran, expected: number, ...texts: readonly (string | RegExp)[]): void {
  expect(code).toBe(expected);
  for (const text of texts) expect(stdout).toMatch(text);
}

/** Returns the document that a successful command printed as JSON. */
export function documentIn({ code, stdout }: Ran) {
  expect(code).toBe(0);
  return JSON.parse(stdout);
}

function specText(kubeconfigFile: string, server: string, fields: object): string {
  const content = {
    name: CLUSTER,
    mode: 'enforce',
    allocator: 'table',
    kubeconfig: { file: kubeconfigFile },
    apiServers: [{ address: '203.0.113.10', probe: { url: `${server}/readyz` } }],
    serviceClusterIPRange: CIDR,
    serviceNodePortRange: NODE_PORTS,
    // On a busy machine, a short lease could expire between two commands.
    endpoints: { leaseSeconds: 600 },
    ...fields,
  };
  const text = JSON.stringify(content, undefined, 2);
  specIn(text);
  return text;
}

function restoredService(name: string, clusterIP: string) {
  const metadata = { namespace: 'shop', name, uid: `uid-of-${name}`, resourceVersion: '1' };
  return { ...stockService(name, clusterIP), metadata };
}
