// The clusters of a deployed table: npm run register -- --table NAME cluster-a.yml cluster-b.yml
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { ClusterSpec } from '../lib/cluster/cluster-spec.ts';
import { parseClusterSpec } from '../lib/cluster/parse-cluster-spec.ts';
import { describeFaults } from '../lib/cluster/spec-fault.ts';
import { registerCluster, takeOverCluster } from '../lib/table/cluster-registration.ts';
import { readCluster } from '../lib/table/clusters.ts';
import { createDynamoClient } from '../lib/table/dynamodb-client.ts';
import { dynamoDbTable } from '../lib/table/dynamodb-table.ts';
import { TableError } from '../lib/table/errors.ts';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';

const USAGE = `Usage: npm run register -- --table NAME FILE...
          registers the cluster specs in the table
       npm run register -- --table NAME --take-over STACK CLUSTER...
          makes the stack the owner of the clusters; the one that was only observes from then on
Region and credentials are found as the AWS SDK finds them.`;

interface Asked {
  readonly table: string;
  /** Who takes the clusters of these names over; absent: `words` are files. */
  readonly stack?: string;
  readonly words: readonly string[];
}

type Step = (table: KeyValueTable) => Promise<string>;

/** Exit codes: 2 usage, 3 a spec that is not valid or a cluster that is not registered, 5 the table. */
async function main(): Promise<number> {
  const asked = parse();
  if (typeof asked === 'string') return told(2, asked);
  const { stack, words } = asked;
  const steps = stack === undefined ? registrations(words) : words.map((name) => takeOver(name, stack));
  return typeof steps === 'string' ? told(3, steps) : run(asked.table, steps);
}

async function run(tableName: string, steps: readonly Step[]): Promise<number> {
  const client = createDynamoClient();
  const deadline = AbortSignal.timeout(60_000);
  const table = dynamoDbTable({ client, tableName, deadline, nowMs: Date.now, newWriteId: randomUUID });
  try {
    for (const step of steps) console.log(await step(table));
    return 0;
  } catch (error) {
    if (error instanceof NotRegistered) return told(3, error.message);
    if (error instanceof TableError) return told(5, error.message);
    throw error;
  } finally {
    client.destroy();
  }
}

function parse(): Asked | string {
  try {
    const options = { table: { type: 'string' }, 'take-over': { type: 'string' } } as const;
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    const { table, 'take-over': stack } = values;
    if (table === undefined || positionals.length === 0) return USAGE;
    return { table, words: positionals, ...(stack !== undefined && { stack }) };
  } catch (error) {
    return `${error instanceof Error ? error.message : String(error)}\n${USAGE}`;
  }
}

/** Every file is read before any is registered: the text says what is wrong with them. */
function registrations(files: readonly string[]): Step[] | string {
  const read = files.map(specIn);
  const faults = read.flatMap(({ fault }) => fault ?? []);
  if (faults.length > 0) return `${faults.join('\n')}\nNothing was registered.`;
  return read.flatMap(({ spec }) => (spec === undefined ? [] : (table) => register(table, spec)));
}

class NotRegistered extends Error {}

function takeOver(name: string, stack: string): Step {
  return async (table) => {
    if (await takeOverCluster(table, name, stack)) return `${name}: owned by ${stack}`;
    throw new NotRegistered(`No cluster of the name ${name} is registered in the table.`);
  };
}

function specIn(file: string): { readonly spec?: ClusterSpec; readonly fault?: string } {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    return { fault: `${file} cannot be read: ${error instanceof Error ? error.message : String(error)}` };
  }
  const result = parseClusterSpec(text);
  return 'faults' in result ? { fault: describeFaults(file, result.faults) } : { spec: result.spec };
}

async function register(table: KeyValueTable, spec: ClusterSpec): Promise<string> {
  const before = await readCluster(table, spec.name);
  const { generation } = await registerCluster(table, spec);
  return `${spec.name}: ${before?.generation === generation ? 'unchanged' : 'registered'}, generation ${generation}`;
}

function told(code: number, text: string): number {
  console.error(text);
  return code;
}

process.exitCode = await main();
