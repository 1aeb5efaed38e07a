import { DescribeTimeToLiveCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createDynamoClient, dynamoDbStore } from '../lib/table/dynamodb/dynamodb-table.ts';
import type { KeyValueTable, Store } from '../lib/table/key-value-table.ts';
import { unlessAborted } from '../lib/util/async.ts';
import { defined } from '../lib/util/values.ts';
import { findRunning, openRunning, type Running } from '../local/data-folder.ts';
import { configurationError, usageError } from './errors.ts';

/** The place of the table. Default: the table of the `kbctl run` in this folder. */
export interface TableOptions {
  readonly table?: string;
  readonly profile?: string;
  readonly region?: string;
  readonly endpointUrl?: string;
  readonly data?: string;
}

export interface OpenTable extends Pick<Store, 'clock'>, AsyncDisposable {
  readonly tableName: string;
  /** The name of the table for users: `table kbc-prod`, or `the local table in .kbctl/embedded`. */
  readonly title: string;
  readonly running?: Running;
  /** The table. Its requests end when the command ends. */
  readonly table: KeyValueTable;
  readonly tableUntil: Store['table'];
  /** Returns a note for users if the table is known to keep expired items. */
  adviceOnTtl(): Promise<string | undefined>;
}

/** @param operands the operands of the command. The name of a cluster selects one of several local runs. */
export async function openTable(
  options: TableOptions,
  operands: readonly string[],
  signal: AbortSignal,
  nowMs: () => number,
): Promise<OpenTable> {
  const { client, ...found } = await (options.table === undefined
    ? localTable(options, operands)
    : tableInAws(options.table, options, signal));
  const { table, clock } = dynamoDbStore(client, found.tableName, nowMs);
  return {
    ...found,
    clock,
    table: table(signal),
    tableUntil: table,
    adviceOnTtl: () => adviceOnTtl(client, found.tableName, signal),
    [Symbol.asyncDispose]: async () => client.destroy(),
  };
}

async function adviceOnTtl(
  client: DynamoDBClient,
  tableName: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const command = new DescribeTimeToLiveCommand({ TableName: tableName });
    const { TimeToLiveDescription: ttl } = await client.send(command, { abortSignal: signal });
    if (ttl?.AttributeName === 'ttl' && /^ENABL/.test(ttl.TimeToLiveStatus ?? '')) return undefined;
    return `table ${tableName} keeps expired items, because TTL on its attribute "ttl" is off: turn it on with "aws dynamodb update-time-to-live" (docs/installing.md).`;
  } catch (error) {
    // Without the permission for this request, or without a table, it is not known whether TTL is on.
    if (!(error instanceof Error) || error.name !== 'UnknownOperationException') return undefined;
    return `the database of table ${tableName} has no TTL: expired items stay, and the table grows slowly.`;
  }
}

type Found = Pick<OpenTable, 'tableName' | 'title' | 'running'> & { readonly client: DynamoDBClient };

async function localTable(options: TableOptions, operands: readonly string[]): Promise<Found> {
  if ((options.profile ?? options.region ?? options.endpointUrl) !== undefined) {
    throw usageError('--profile, --region and --endpoint-url need --table NAME.');
  }
  const folder = options.data ?? (await onlyLocalFolder(operands));
  const { client, running } = await openRunning(folder);
  return { client, running, tableName: running.tableName, title: `the local table in ${folder}` };
}

async function tableInAws(
  tableName: string,
  { profile, region, endpointUrl, data }: TableOptions,
  signal: AbortSignal,
): Promise<Found> {
  if (data !== undefined) throw usageError('Use either --table (a table in AWS) or --data (a local one).');
  const client = createDynamoClient({
    ...defined({ profile, region, endpoint: endpointUrl }),
    // A user can wait longer than a pass, and has a slower network.
    connectionTimeoutMs: 3_000,
    requestTimeoutMs: 5_000,
  });
  await refuseWithoutAccess(client, profile ?? process.env['AWS_PROFILE'], signal);
  return { client, tableName, title: `table ${tableName}` };
}

/** Looks for a region and credentials before the first request, as the AWS CLI does. @throws CliError if one is missing */
async function refuseWithoutAccess(
  { config }: DynamoDBClient,
  profile: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const ofProfile = profile === undefined ? '' : ` in profile ${profile}`;
  await config.region().catch(() => {
    throw configurationError(`No valid AWS region is set${ofProfile}. Use --region, or set AWS_REGION.`);
  });
  // The message of the SDK is not repeated: it may quote credentials.
  await unlessAborted(signal, () => config.credentials()).catch(() => {
    if (signal.aborted) {
      throw configurationError(
        'Timed out before AWS credentials were found. Check the credential provider, or use a longer --timeout.',
      );
    }
    throw configurationError(
      `There are no valid AWS credentials${ofProfile}. Use --profile, or sign in as for the AWS CLI (check with "aws sts get-caller-identity").`,
    );
  });
}

/** If `operands` names the cluster of a local run, returns the folder of that run; otherwise, the folder of the only run. */
async function onlyLocalFolder(operands: readonly string[]): Promise<string> {
  const running = await findRunning();
  const named = running.filter(({ cluster }) => operands.includes(cluster));
  const [only, ...others] = (named.length === 1 ? named : running).map(({ folder }) => folder);
  if (only !== undefined && others.length === 0) return only;
  if (only !== undefined) {
    throw usageError(
      `Several local runs are active: choose one with --data, or name its cluster: ${[only, ...others].join(', ')}.`,
    );
  }
  throw usageError(
    'No table: use --table NAME for one in AWS or --data .kbctl/CLUSTER for a local one, or start one with "kbctl run".',
  );
}
