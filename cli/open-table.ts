import { randomUUID } from 'node:crypto';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { unlessAborted } from '../lib/runtime/deadline.ts';
import { CLUSTERS } from '../lib/table/clusters.ts';
import { createDynamoClient } from '../lib/table/dynamodb-client.ts';
import type { Asker } from '../lib/table/dynamodb-errors.ts';
import { dynamoDbTable } from '../lib/table/dynamodb-table.ts';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import { MOST_SKEW_MS, type ServerClock, serverClock } from '../lib/table/server-clock.ts';
import { findRunning, type Running } from '../local/running.ts';
import { configurationError, usageError } from './errors.ts';

/** Where the table is. Without any of these: that of the `kbctl run` in this folder. */
export interface TableOptions {
  /** In AWS. */
  readonly table?: string;
  readonly profile?: string;
  readonly region?: string;
  /** The folder of a local run. */
  readonly data?: string;
}

/** A table, and what else is known of where it is. */
export interface OpenTable {
  readonly tableName: string;
  /** The only clock of a command: this host's, corrected by the replies of the table so far. */
  readonly clock: ServerClock;
  /** For people: `table kbc-prod in eu-central-1`, `the local table of embedded`. */
  readonly title: string;
  /** The local run whose table it is. */
  readonly running?: Running;
  /** Its calls are ended by the signal. */
  readonly tableUntil: (signal: AbortSignal) => KeyValueTable;
  close(): Promise<void>;
}

/**
 * @param signal ends the search for credentials.
 * @param nowMs this host's clock.
 */
export async function openTable(options: TableOptions, signal: AbortSignal, nowMs: () => number): Promise<OpenTable> {
  if (options.table !== undefined) return openInAws(options.table, options, { signal, nowMs });
  if (options.profile !== undefined || options.region !== undefined) {
    throw usageError('--profile and --region go with --table NAME: which table in AWS?');
  }
  const folder = options.data ?? (await onlyLocalFolder());
  // It carries a whole table server, which no command on AWS waits for.
  const { openLocalTable } = await import('../local/local-table.ts');
  const { client, tableName, running, close } = await openLocalTable({ folder });
  const found = { client, tableName, title: `the local table in ${folder}`, close };
  return opened({ ...found, ...(running && { running }) }, 'localPerson', nowMs);
}

async function openInAws(
  tableName: string,
  { profile, region, data }: TableOptions,
  { signal, nowMs }: { readonly signal: AbortSignal; readonly nowMs: () => number },
): Promise<OpenTable> {
  if (data !== undefined) throw usageError('--table names a table in AWS and --data a local one: give one of them.');
  const client = createDynamoClient({
    ...(profile !== undefined && { profile }),
    ...(region !== undefined && { region }),
    // A person waits longer than a pass, and from farther away.
    connectionTimeoutMs: 3_000,
    requestTimeoutMs: 5_000,
  });
  await refuseWithoutAccess(client, profile ?? process.env['AWS_PROFILE'], signal);
  return opened(
    { client, tableName, title: `table ${tableName}`, close: async () => client.destroy() },
    'person',
    nowMs,
  );
}

/**
 * What the AWS CLI would find wrong before it asked anybody.
 * @throws CliError without a region, and without credentials.
 */
async function refuseWithoutAccess(
  { config }: DynamoDBClient,
  profile: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const ofProfile = profile === undefined ? '' : ` in the profile ${profile}`;
  await config.region().catch(() => {
    throw configurationError(
      `No AWS region is set${ofProfile}, or none of a region's form: name it with --region, or set AWS_REGION.`,
    );
  });
  // What the SDK says of it is not repeated: it may quote what it found.
  await unlessAborted(signal, () => config.credentials()).catch(() => {
    if (signal.aborted) {
      throw configurationError(
        'The time was over before AWS credentials were found: look at what finds them, or give it a longer --timeout.',
      );
    }
    throw configurationError(
      `There are no valid AWS credentials${ofProfile}: name a profile that has some with --profile, or sign in as for the AWS CLI ("aws sts get-caller-identity" tries it).`,
    );
  });
}

interface Found extends Omit<OpenTable, 'tableUntil' | 'clock'> {
  readonly client: DynamoDBClient;
}

function opened({ client, ...found }: Found, asker: Asker, nowMs: () => number): OpenTable {
  const { tableName } = found;
  const clock = serverClock(client, nowMs);
  const tableUntil = (deadline: AbortSignal) =>
    dynamoDbTable({ client, tableName, deadline, nowMs: clock.nowMs, newWriteId: randomUUID, asker });
  return { ...found, clock, tableUntil };
}

/** Which local table is meant where none is named: the one that is running, or the one that there is. */
async function onlyLocalFolder(): Promise<string> {
  const running = await findRunning();
  const [only, ...others] = running.map(({ folder }) => folder);
  if (only !== undefined && others.length === 0) return only;
  if (only !== undefined) {
    throw usageError(`Several local runs are going on: name one with --data, of ${[only, ...others].join(', ')}.`);
  }
  throw usageError(
    'Which table? Name one in AWS with --table NAME, or a local one with --data .kbctl/CLUSTER, or start one with "kbctl run".',
  );
}

/** Reads an item that need not exist: any reply of the table carries its time. */
export async function measureClock(table: KeyValueTable): Promise<void> {
  await table.get(CLUSTERS, '*');
}

/** `undefined`: this host's clock agrees with the table's well enough. */
export function skewWords(clock: ServerClock): string | undefined {
  const aheadMs = clock.skewMs();
  if (Math.abs(aheadMs) <= MOST_SKEW_MS) return undefined;
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(1);
  return `The clock of this host is ${seconds} s or more ${aheadMs > 0 ? 'ahead of' : 'behind'} the table's`;
}

/** @throws CliError by a clock that is not to be worked with, corrected or not. */
export function refuseSkew(clock: ServerClock): void {
  const words = skewWords(clock);
  if (words === undefined) return;
  throw configurationError(
    `${words}, and at most ${MOST_SKEW_MS / 1000} s is accepted: nothing was written. Set the clock with chronyd or timedatectl, and run the command again.`,
  );
}
