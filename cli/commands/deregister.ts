import { setTimeout as sleep } from 'node:timers/promises';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { UndoResult } from '../../lib/api-servers/deregister.ts';
import type { ClusterSpec } from '../../lib/cluster/cluster-spec.ts';
import type { DeregistrationResult } from '../../lib/dispatch/deregistration.ts';
import { listLeases } from '../../lib/table/leases.ts';
import { describeError } from '../../lib/telemetry/describe-error.ts';
import type { Act, Cli, CommandTable, GlobalOptions } from '../cli.ts';
import { configurationError, EXIT, type ExitCode } from '../errors.ts';
import {
  type ConnectionOptions,
  connectionOf,
  parseDuration,
  withConnectionOptions,
  withExamples,
} from '../options.ts';
import { listAddresses, registeredCluster } from '../registered.ts';

interface Options extends GlobalOptions, ConnectionOptions {
  readonly for: number;
  readonly drain?: number;
  readonly lastOne?: boolean;
  readonly undo?: boolean;
}

type Deregistered = Extract<DeregistrationResult, { outcome: 'deregistered' }>;

const HOUR_MS = 3_600_000;
/** Twice the interval of the endpoints loop, as the deregister function. */
const LONGEST_MS = 20_000;

const DESCRIPTION = `Take an API server out of the endpoints before it is stopped

Withdraws its address in the table, which no probe undoes before its time is over (but for a server that went down and came
back), and takes it out of Endpoints and EndpointSlice. Safe to repeat.

Exit codes: 0 when it is out, 1 while it is still published or when --drain was cut short, also because the API server was not
reached, 3 when it was refused and nothing was changed.`;

/** `kbctl deregister CLUSTER ADDRESS`. */
export function deregisterCommand(act: Act): Command {
  const command = new Command('deregister')
    .summary('Take an API server out of the endpoints before it is stopped')
    .description(DESCRIPTION)
    .argument('<cluster>', 'its name')
    .argument('<address>', 'the published address of the API server')
    .addOption(
      new Option('--for <duration>', 'how long no probe brings it back, at most 24h')
        .argParser(parseWithdrawal)
        .default(HOUR_MS, '1h'),
    )
    .option('--drain <duration>', 'once it is out, wait so long for connections that are still open', parseDuration)
    .option('--last-one', 'also when no other API server is live: the Service has no endpoints then')
    .addOption(
      new Option('--undo', 'end its withdrawal: the next tick publishes it again, if it answers').conflicts([
        'for',
        'drain',
        'lastOne',
      ]),
    );
  const action = act<Options>((cli, [name = '', address = ''], options) => run(cli, name, address, options));
  return withExamples(withConnectionOptions(command).action(action), [
    'kbctl deregister prod-eu-1 203.0.113.10',
    'kbctl deregister prod-eu-1 203.0.113.10 --drain 60s && systemctl stop kube-apiserver',
    'kbctl deregister prod-eu-1 203.0.113.10 --undo',
  ]);
}

async function run(cli: Cli, name: string, address: string, options: Options): Promise<ExitCode> {
  const opened = await cli.openForWriting();
  const { spec } = await registeredCluster(opened.table, name);
  if (options.undo) return undo(cli, opened, spec, address);
  const [{ passEnvironment }, { deregisterAddress }] = await Promise.all([
    import('../pass-environment.ts'),
    import('../../lib/dispatch/deregistration.ts'),
  ]);
  const { environment, close } = await passEnvironment(cli, opened, connectionOf(options));
  const asked = { cluster: name, address, untilMinutes: options.for / 60_000, lastOne: options.lastOne };
  const deadline = environment.startDeadline(LONGEST_MS);
  const telemetry = environment.telemetry({ loop: 'deregister' });
  const wouldWrite = new Set<string>();
  const progress = cli.progress(`taking ${address} out of the endpoints`);
  let result: DeregistrationResult;
  try {
    result = await deregisterAddress(
      asked,
      { environment, telemetry, remainingMs: () => LONGEST_MS },
      { signal: deadline.signal, wouldWrite: (description) => wouldWrite.add(description) },
    );
  } catch (error) {
    if (cli.ended.aborted) tellUnknown(cli, name, address);
    throw error;
  } finally {
    progress.end();
    deadline.cancel();
    await close();
  }
  if (result.outcome !== 'deregistered') throw await refusal(cli, name, address, result);
  if (spec.mode === 'observe') cli.output.say(`${name} is in observe: its endpoints stay as they are.`);
  return told(cli, { name, address, result, wouldWrite: [...wouldWrite] }, options);
}

interface Told {
  readonly name: string;
  readonly address: string;
  readonly result: Deregistered;
  readonly wouldWrite: readonly string[];
}

async function told(cli: Cli, { name, address, result, wouldWrite }: Told, { drain }: Options): Promise<ExitCode> {
  const { untilMs, stillPublished, changes, error } = result;
  const until = new Date(untilMs).toISOString();
  const drained = drain !== undefined && !stillPublished && (await drainFor(cli, address, drain));
  const document = {
    kind: 'Deregistration',
    cluster: name,
    address,
    until,
    stillPublished,
    changes,
    wouldWrite,
    ...(drain !== undefined && { drained }),
    ...(error !== undefined && { error: { ...describeError(error) } }),
  };
  cli.output.object(document, () => [
    stillPublished
      ? `${address} is withdrawn until ${until}, and still published`
      : `${address} is out of the endpoints of ${name}, and withdrawn until ${until}`,
    ...changes.map((change) => `  ${change}`),
    ...wouldWrite.map((description) => `  would ${description}`),
    ...(error === undefined ? [] : [`  ${describeError(error).message}`]),
  ]);
  if (stillPublished) {
    cli.output.say(
      'The kubernetes-service loop takes it out at its next tick. To look again, run the command once more.',
    );
  }
  if (cli.ended.aborted) return EXIT.interrupted;
  return stillPublished || (drain !== undefined && !drained) ? EXIT.findings : EXIT.fine;
}

async function refusal(
  cli: Cli,
  name: string,
  address: string,
  result: Exclude<DeregistrationResult, Deregistered>,
): Promise<Error> {
  if (result.outcome === 'refused') {
    if (result.reason !== 'lastLiveAddress') return configurationError(`${result.message}. Nothing was changed.`);
    return configurationError(
      `${address} is the last live address of ${name}: without it the kubernetes Service has no endpoints. Let another come back first ("kbctl get leases ${name}"), or say --last-one. Nothing was changed.`,
    );
  }
  const { table } = await cli.openTable();
  const [{ listLeases }, { listAddresses }, { spec }] = await Promise.all([
    import('../../lib/table/leases.ts'),
    import('../registered.ts'),
    registeredCluster(table, name),
  ]);
  if (spec.endpoints.reconciler === 'none') return configurationError(`${result.message}.`);
  const leased = (await listLeases(table, name)).map(({ lease }) => lease.address);
  return configurationError(`${address} is no API server of ${name}: ${listAddresses(spec, leased)}`);
}

function tellUnknown(cli: Cli, name: string, address: string): void {
  cli.output.say(
    `Interrupted: ${address} may have been withdrawn, or not. "kbctl get leases ${name}" shows it, and the command can be run again.`,
  );
}

function parseWithdrawal(text: string): number {
  const ms = parseDuration(text);
  if (ms <= 24 * HOUR_MS) return ms;
  throw new InvalidArgumentError('A withdrawal lasts 24h at most.');
}

/** `kbctl deregister CLUSTER ADDRESS --undo`: only the table is written, and the loop does the rest. */
async function undo(cli: Cli, { table, clock }: CommandTable, spec: ClusterSpec, text: string): Promise<ExitCode> {
  const { undoDeregister } = await import('../../lib/api-servers/deregister.ts');
  const result = await undoDeregister({ spec, table, address: text, nowMs: clock.nowMs });
  if (result.outcome === 'notAnAddress') {
    throw configurationError(`"${text}" is no IP address: name one published address. Nothing was changed.`);
  }
  if (result.outcome === 'notRegistered') {
    const leased = (await listLeases(table, spec.name)).map(({ lease }) => lease.address);
    const instead = listAddresses(spec, leased);
    throw configurationError(`${text} is no API server of ${spec.name}: ${instead}`);
  }
  const { address } = result;
  const wasUntil = result.outcome === 'undone' ? { wasUntil: new Date(result.wasUntilMs).toISOString() } : {};
  const document = { kind: 'WithdrawalEnd', cluster: spec.name, address, ...wasUntil };
  cli.output.object(document, () => [undoneLine(result, spec)]);
  return EXIT.fine;
}

function undoneLine(result: Extract<UndoResult, { address: string }>, { name, endpoints }: ClusterSpec): string {
  const { address } = result;
  if (result.outcome === 'notWithdrawn') return `${address} is not withdrawn from ${name}: nothing was changed`;
  const then =
    endpoints.reconciler === 'none'
      ? 'its reconciler is none, and nothing is published'
      : 'the next tick publishes it again, if it answers';
  return `${address} is withdrawn from ${name} no longer: ${then}`;
}

/** Waits for connections to an address that is out of the endpoints; counts down on a terminal. @returns whether the time was over, and nobody ended it before. */
async function drainFor(cli: Cli, address: string, drainMs: number): Promise<boolean> {
  const endsAtMs = performance.now() + drainMs;
  const leftMs = () => endsAtMs - performance.now();
  const text = () => `${address} is out: ${Math.ceil(leftMs() / 1000)}s more for connections that are open`;
  if (cli.output.terminal.err.isTTY !== true) cli.output.say(text());
  const progress = cli.progress(text());
  try {
    while (leftMs() > 0 && !cli.signal.aborted) {
      progress.update(text());
      await sleep(Math.min(1_000, leftMs()), undefined, { signal: cli.signal }).catch(() => undefined);
    }
  } finally {
    progress.end();
  }
  if (!cli.signal.aborted) return true;
  cli.output.say('Not waited for any longer: connections may still be open.');
  return false;
}
