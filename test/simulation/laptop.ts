import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Cli } from '../../cli/cli.ts';
import type { OpenTable } from '../../cli/open-table.ts';
import { type PassEnvironment, passEnvironment } from '../../cli/pass-environment.ts';
import { serverClock } from '../../lib/table/server-clock.ts';
import type { World } from './world.ts';

const QUARTER_MS = 16 * 60_000;

/** What `kbctl` works with on a laptop whose clock is a quarter of an hour off, up to the network. */
export async function laptop(world: World): Promise<Pick<PassEnvironment, 'environment' | 'close'>> {
  const aheadMs = world.driver.oneOf([QUARTER_MS, -QUARTER_MS]);
  world.ledger.note(`kbctl, ${aheadMs} ms ahead`);
  const { client, reply } = datedClient(world.nowMs);
  const clock = serverClock(client, () => world.nowMs() + aheadMs);
  await reply();
  const end = new AbortController().signal;
  const cli = { options: {}, signal: end, ended: end, output: { say: () => {} } } as unknown as Cli;
  const opened = { client, clock, tableUntil: (signal: AbortSignal) => world.table(signal) } as unknown as OpenTable;
  const { environment, close } = await passEnvironment(cli, opened);
  const { connect, startDeadline, newPassId } = world.environment;
  return { environment: { ...environment, connect, startDeadline, newPassId }, close };
}

type Middleware = (next: () => Promise<unknown>) => () => Promise<unknown>;

/** A client of DynamoDB, as far as its clock is measured by it. */
function datedClient(nowMs: () => number) {
  const middlewares: Middleware[] = [];
  const client = { middlewareStack: { add: (middleware: Middleware) => middlewares.push(middleware) } };
  const reply = async () => {
    const headers = { date: new Date(nowMs()).toUTCString() };
    for (const middleware of middlewares) await middleware(async () => ({ response: { headers } }))();
  };
  return { client: client as unknown as DynamoDBClient, reply };
}
