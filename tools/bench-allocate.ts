// Measures allocations through the function's handler, beside bare conditional updates of one item: npm run bench:allocate
// Table server and callers share this process. Prints the rows for docs/performance.md.
import { randomUUID } from 'node:crypto';
import os from 'node:os';
import { GetItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { allocation, Backoff } from '../lib/allocate/allocation.ts';
import { RANGE_KEYS } from '../lib/cluster/spec-ranges.ts';
import { parseClusterSpec } from '../lib/spec/parse-cluster-spec.ts';
import { registerCluster } from '../lib/table/cluster-registration.ts';
import { createTable } from '../lib/table/dynamodb-client.ts';
import { dynamoDbTable } from '../lib/table/dynamodb-table.ts';
import { saveRange } from '../lib/table/ranges.ts';
import type { Telemetry } from '../lib/telemetry/telemetry.ts';
import { localEnvironment, TABLE_NAME } from '../local/local-environment.ts';
import { startTableServer, tableServerClient } from '../local/table-server.ts';

const SPEC = `
name: bench
mode: enforce
allocator: table
kubeconfig: { file: none }
apiServers: [{ address: 203.0.113.10 }]
serviceClusterIPRange: 10.0.0.0/24
`;
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
await createTable(client, TABLE_NAME, { pollMs: 5 });
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

/** A cluster of its own for each measurement. */
async function aCluster(): Promise<string> {
  const name = `bench-${randomUUID().slice(0, 8)}`;
  const parsed = parseClusterSpec(SPEC.replace('name: bench', `name: ${name}`));
  if ('faults' in parsed) throw new Error(parsed.faults.map(({ message }) => message).join('\n'));
  const deadline = new AbortController().signal;
  const table = dynamoDbTable({ client, tableName: TABLE_NAME, deadline, nowMs: Date.now, newWriteId: randomUUID });
  await registerCluster(table, parsed.spec);
  const none = new Uint8Array(0);
  const strikes = { once: none, twice: none };
  const stored = { range: '10.0.0.0/24', data: none, allocator: 'table', generation: 1, strikes, holds: [] } as const;
  await saveRange(table, name, RANGE_KEYS.primary, stored, undefined);
  return name;
}

/** `callers` at once, each with what a process of its own would remember, until all requests are made. */
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

/** Reads a counter and writes it with one more, if no other writer did meanwhile: the least that an allocation could be. */
async function bareUpdates(callers: number, requests: number): Promise<Measured> {
  const TableName = TABLE_NAME;
  const Key = { cluster: { S: `peer-${randomUUID()}` }, key: { S: 'counter' } };
  await client.send(
    new UpdateItemCommand({
      TableName,
      Key,
      UpdateExpression: 'SET n = :n',
      ExpressionAttributeValues: { ':n': { N: '0' } },
    }),
  );
  return measure('GetItem and conditional UpdateItem', callers, requests, 1, () => {
    const backoff = new Backoff();
    return async () => {
      await backoff.begin();
      for (;;) {
        const { Item } = await client.send(new GetItemCommand({ TableName, Key, ConsistentRead: true }));
        const n = Number(Item?.['n']?.N);
        const update = new UpdateItemCommand({
          TableName,
          Key,
          UpdateExpression: 'SET n = :next',
          ConditionExpression: 'n = :n',
          ExpressionAttributeValues: { ':n': { N: String(n) }, ':next': { N: String(n + 1) } },
        });
        const won = await client.send(update).then(
          () => true,
          (error: unknown) => {
            if (error instanceof Error && error.name === 'ConditionalCheckFailedException') return false;
            throw error;
          },
        );
        if (won) break;
        retries += 1;
        await backoff.lost();
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
