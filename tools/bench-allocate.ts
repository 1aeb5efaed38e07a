// Measures allocations through the function's handler, beside bare conditional updates of one item: npm run bench:allocate
// Table server and callers share this process. Prints the rows for docs/performance.md.
import { randomUUID } from 'node:crypto';
import os from 'node:os';
import { allocation, Backoff } from '../lib/allocate/allocation.ts';
import { RANGE_KEYS } from '../lib/cluster/spec-ranges.ts';
import { registerCluster } from '../lib/table/cluster-registration.ts';
import { createTable } from '../lib/table/dynamodb-client.ts';
import { dynamoDbTable } from '../lib/table/dynamodb-table.ts';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import { saveRange } from '../lib/table/ranges.ts';
import { writeRunRecord } from '../lib/table/run-records.ts';
import type { Telemetry } from '../lib/telemetry/telemetry.ts';
import { LOCAL_TABLE, localEnvironment } from '../local/local-environment.ts';
import { startTableServer, tableServerClient } from '../local/table-server.ts';
import { aClusterSpec } from '../test/support/a-cluster-spec.ts';
import { aRunRecord } from '../test/support/run-records.ts';

const ADDRESSES = 254;

interface Measured {
  readonly what: string;
  readonly callers: number;
  readonly requests: number;
  readonly items: number;
  readonly retries: number;
  readonly seconds: number;
  readonly latenciesMs: readonly number[];
}

const server = await startTableServer({ key: 'test' });
const client = tableServerClient(server);
await createTable(client, LOCAL_TABLE, { pollMs: 5 });
let retries = 0;
const telemetry: Telemetry = {
  log: () => {},
  count: (name, by) => {
    if (name === 'allocationRetries') retries += by;
  },
  sample: () => {},
  flush: () => {},
};
const { environment, close } = localEnvironment({
  client,
  loadKubeconfig: () => Promise.reject(new Error('nothing here needs a cluster')),
  telemetry: () => telemetry,
});

function table(): KeyValueTable {
  const deadline = new AbortController().signal;
  return dynamoDbTable({ client, tableName: LOCAL_TABLE, deadline, nowMs: Date.now, newWriteId: randomUUID });
}

async function aCluster(): Promise<string> {
  const name = `bench-${randomUUID().slice(0, 8)}`;
  await registerCluster(table(), aClusterSpec({ name, allocator: 'table' }));
  await writeRunRecord(table(), name, 'cluster-ip-repair', aRunRecord(Date.now()), undefined);
  const none = new Uint8Array(0);
  const kept = { strikes: { once: none, twice: none }, holds: [], unclaimed: [] };
  const stored = { range: '10.0.0.0/24', data: none, allocator: 'table', generation: 1, ...kept } as const;
  await saveRange(table(), name, RANGE_KEYS.primary, stored, undefined);
  return name;
}

/** Runs `callers` callers at once, each with the state of its own process, until all requests are made. */
async function measure(
  what: string,
  callers: number,
  requests: number,
  count: number,
  newCaller: () => () => Promise<number>,
): Promise<Measured> {
  retries = 0;
  let left = requests;
  let items = 0;
  const latenciesMs: number[] = [];
  const startedAt = performance.now();
  const run = async () => {
    const call = newCaller();
    while (left-- > 0) {
      const at = performance.now();
      const given = await call();
      items += given;
      latenciesMs.push(performance.now() - at);
    }
  };
  await Promise.all(Array.from({ length: callers }, run));
  const seconds = (performance.now() - startedAt) / 1000;
  if (items !== requests * count) throw new Error(`${what}: ${items} of ${requests * count} were given`);
  return { what, callers, requests, items, retries, seconds, latenciesMs: latenciesMs.sort((a, b) => a - b) };
}

async function allocations(callers: number, requests: number, count: number): Promise<Measured> {
  const cluster = await aCluster();
  return measure(`allocate, ${count} a request`, callers, requests, count, () => {
    const handler = allocation();
    return async () => {
      const items = [{ range: 'serviceips', next: true, count }];
      const event = { requestId: randomUUID(), cluster, operation: 'allocate', items };
      const answer = await handler(event, { getRemainingTimeInMillis: () => 30_000, environment });
      return answer.outcome === 'done' ? answer.items.length : 0;
    };
  });
}

/** Reads an item and writes it again, if no other writer did meanwhile: the least that an allocation could be. */
async function bareUpdates(callers: number, requests: number): Promise<Measured> {
  const cluster = `peer-${randomUUID()}`;
  const store = table();
  return measure('GetItem and conditional PutItem', callers, requests, 1, () => {
    const backoff = new Backoff();
    return async () => {
      await backoff.begin();
      for (let attempt = 0; ; attempt++) {
        const at = performance.now();
        const previous = await store.get(cluster, 'counter');
        const written = await store.put({ cluster, key: 'counter', value: 0, schema: 1 }, previous);
        if (written.outcome === 'won') break;
        retries += 1;
        await backoff.lost(attempt, performance.now() - at);
      }
      backoff.won();
      return 1;
    };
  });
}

function row({ what, callers, requests, items, retries: again, seconds, latenciesMs }: Measured): string {
  const at = (share: number) =>
    Math.round(latenciesMs[Math.min(latenciesMs.length - 1, Math.floor(share * latenciesMs.length))] ?? 0);
  const perSecond = (items / seconds).toFixed(0);
  const cells = [what, callers, requests, perSecond, (again / requests).toFixed(2), at(0.5), at(0.99), at(1)];
  return `| ${cells.join(' | ')} |`;
}

await allocations(5, 50, 1); // warm
await bareUpdates(5, 50);

console.log(
  `${os.cpus()[0]?.model}, ${os.cpus().length} cores, Node ${process.version}, load ${os.loadavg()[0]?.toFixed(1)}\n`,
);
console.log('| what | callers | requests | items a second | retries a request | p50 ms | p99 ms | longest ms |');
console.log('| --- | --- | --- | --- | --- | --- | --- | --- |');
const measurements = [
  () => bareUpdates(1, ADDRESSES),
  () => allocations(1, ADDRESSES, 1),
  () => bareUpdates(50, ADDRESSES),
  () => allocations(50, ADDRESSES, 1),
  () => allocations(50, 50, 1),
  () => allocations(50, 50, 5),
];
for (const measurement of measurements) console.log(row(await measurement()));

await close();
client.destroy();
await server.close();
