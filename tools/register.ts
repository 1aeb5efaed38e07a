// Registers clusters in a deployed table: npm run register -- --table NAME cluster-a.yml cluster-b.yml
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

const USAGE = `Usage: npm run register -- --table NAME FILE...
Registers the cluster specs in the table; region and credentials are found as the AWS SDK finds them.`;

/** Exit codes: 2 usage, 3 a spec that is not valid, 5 the table. */
async function main(): Promise<number> {
  const asked = parse();
  if (typeof asked === 'string') return told(2, asked);
  const read = asked.files.map((file) => ({ file, ...specIn(file) }));
  const faults = read.flatMap(({ fault }) => fault ?? []);
  if (faults.length > 0) return told(3, `${faults.join('\n')}\nNothing was registered.`);
  const client = createDynamoClient();
  const deadline = AbortSignal.timeout(60_000);
  const table = dynamoDbTable({ client, tableName: asked.table, deadline, nowMs: Date.now, newWriteId: randomUUID });
  try {
    for (const { spec } of read) if (spec !== undefined) console.log(await register(table, spec));
    return 0;
  } catch (error) {
    if (error instanceof TableError) return told(5, error.message);
    throw error;
  } finally {
    client.destroy();
  }
}

function parse(): { readonly table: string; readonly files: readonly string[] } | string {
  try {
    const { values, positionals } = parseArgs({ options: { table: { type: 'string' } }, allowPositionals: true });
    if (values.table === undefined || positionals.length === 0) return USAGE;
    return { table: values.table, files: positionals };
  } catch (error) {
    return `${error instanceof Error ? error.message : String(error)}\n${USAGE}`;
  }
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
