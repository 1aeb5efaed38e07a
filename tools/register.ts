// The clusters of a deployed table: npm run register -- --table NAME cluster-a.yml cluster-b.yml
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { ClusterSpec } from '../lib/cluster/cluster-spec.ts';
import { parseClusterSpec } from '../lib/cluster/parse-cluster-spec.ts';
import { describeFaults } from '../lib/cluster/spec-fault.ts';
import { registerCluster } from '../lib/table/cluster-registration.ts';
import { readCluster } from '../lib/table/clusters.ts';
import { createDynamoClient } from '../lib/table/dynamodb-client.ts';
import { dynamoDbTable } from '../lib/table/dynamodb-table.ts';
import { TableError } from '../lib/table/errors.ts';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import { type Change, changesOf, Refused } from './cluster-changes.ts';

const USAGE = `Usage: npm run register -- --table NAME FILE...
          registers the cluster specs in the table
       npm run register -- --table NAME --take-over STACK CLUSTER...
          makes the stack the owner of the clusters; the one that was only observes from then on
       npm run register -- --table NAME --pause REASON [--hours 24] CLUSTER... | --all
          holds the passes of the clusters, from the next tick on; their endpoints stay as they are
       npm run register -- --table NAME --resume CLUSTER... | --all
       npm run register -- --table NAME --remove CLUSTER...
          ends the passes of the clusters; their endpoints stay as they are
Region and credentials are found as the AWS SDK finds them.`;

const OPTIONS = {
  table: { type: 'string' },
  'take-over': { type: 'string' },
  pause: { type: 'string' },
  hours: { type: 'string' },
  resume: { type: 'boolean' },
  remove: { type: 'boolean' },
  all: { type: 'boolean' },
} as const;

interface Asked {
  readonly table: string;
  readonly steps: readonly Change[];
}

/** Exit codes: 2 usage, 3 a spec that is not valid or a cluster that cannot be changed so, 5 the table. */
async function main(): Promise<number> {
  const asked = parse();
  if ('wrong' in asked) return told(2, asked.wrong);
  if ('faults' in asked) return told(3, asked.faults);
  return run(asked.table, asked.steps);
}

async function run(tableName: string, steps: readonly Change[]): Promise<number> {
  const client = createDynamoClient();
  const deadline = AbortSignal.timeout(60_000);
  const table = dynamoDbTable({ client, tableName, deadline, nowMs: Date.now, newWriteId: randomUUID });
  try {
    for (const step of steps) console.log(await step(table));
    return 0;
  } catch (error) {
    if (error instanceof Refused) return told(3, error.message);
    if (error instanceof TableError) return told(5, error.message);
    throw error;
  } finally {
    client.destroy();
  }
}

function parse(): Asked | { readonly wrong: string } | { readonly faults: string } {
  try {
    const { values, positionals } = parseArgs({ options: OPTIONS, allowPositionals: true });
    const { table, ...wanted } = values;
    if (table === undefined || (positionals.length === 0 && !wanted.all)) return { wrong: USAGE };
    const changes = changesOf(wanted, positionals);
    if (typeof changes === 'string') return { wrong: `${changes}\n${USAGE}` };
    const steps = changes ?? registrations(positionals);
    return typeof steps === 'string' ? { faults: steps } : { table, steps };
  } catch (error) {
    return { wrong: `${error instanceof Error ? error.message : String(error)}\n${USAGE}` };
  }
}

/** Every file is read before any is registered: the text says what is wrong with them. */
function registrations(files: readonly string[]): Change[] | string {
  const read = files.map(specIn);
  const faults = read.flatMap(({ fault }) => fault ?? []);
  if (faults.length > 0) return `${faults.join('\n')}\nNothing was registered.`;
  return read.flatMap(({ spec }) => (spec === undefined ? [] : (table) => register(table, spec)));
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
