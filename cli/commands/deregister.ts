import { Command, InvalidArgumentError, Option } from 'commander';
import type { DeregisterResult } from '../../lib/deregister/deregister.ts';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import { readLeases } from '../../lib/table/leases.ts';
import { isoTime } from '../../lib/util/values.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { configurationError, EXIT, type ExitCode } from '../errors.ts';
import { type ConnectionOptions, DRY_RUN, parseDuration, withConnectionOptions } from '../options.ts';
import { describePause, listAddresses, readPauseOf, registeredCluster } from '../registered.ts';

interface Options extends GlobalOptions, ConnectionOptions {
  readonly for: number;
  readonly lastOne?: boolean;
  readonly dryRun?: boolean;
  readonly undo?: boolean;
}

type Deregistered = Extract<DeregisterResult, { outcome: 'deregistered' }>;

const HOUR_MS = 3_600_000;

const DESCRIPTION = `Remove an API server from the endpoints before it is stopped

Withdraws the address in the table and removes it from Endpoints and EndpointSlice. No probe publishes it again before the
withdrawal ends, unless the server was down in between. Safe to repeat.

Exit codes: 0 if it is removed, 1 if it is still published (for example because the API server was not reached), 3 if it
was refused and nothing was changed.`;

export function deregisterCommand(act: Act): Command {
  const command = new Command('deregister')
    .description(DESCRIPTION)
    .argument('<cluster>', 'the name of the cluster')
    .argument('<address>', 'the published address of the API server')
    .addOption(
      new Option('--for <duration>', 'the length of the withdrawal, at most 24h')
        .argParser(parseWithdrawal)
        .default(HOUR_MS, '1h'),
    )
    .option('--last-one', 'remove the last live API server too: the Service then has no endpoints')
    .option('--dry-run', DRY_RUN)
    .addOption(
      new Option('--undo', 'end the withdrawal: the next tick publishes the address if it answers').conflicts([
        'for',
        'lastOne',
        'dryRun',
      ]),
    );
  const action = act<Options>((cli, [name = '', address = ''], options) =>
    options.undo ? undo(cli, name, address) : deregister(cli, name, address, options),
  );
  return withConnectionOptions(command).action(action);
}

async function deregister(cli: Cli, name: string, address: string, options: Options): Promise<ExitCode> {
  const { dryRun = false, lastOne } = options;
  const opened = dryRun ? await cli.openTable() : await cli.openForWriting();
  const cluster = await registeredCluster(opened.table, name);
  const { spec } = cluster;
  const pause = await readPauseOf(cli, cluster);
  const { passEnvironment } = await import('../pass-environment.ts');
  const { deregisterNow } = await import('../../lib/deregister/deregistration.ts');
  await using passes = await passEnvironment(cli, opened, options);
  const request = { cluster: name, address, untilMinutes: options.for / 60_000, lastOne };
  const written = new Set<string>();
  const wouldWrite = (description: string) => written.add(description);
  const result = await deregisterNow(request, passes.environment, { dryRun, wouldWrite }).catch((error: unknown) => {
    const next = `Check with "kbctl get leases ${name}", or run the command again.`;
    if (cli.ended.aborted && !dryRun) cli.output.say(`Interrupted: ${address} may be withdrawn. ${next}`);
    throw error;
  });
  if (result.outcome !== 'deregistered') throw await refusal(cli, spec, address, result);
  report(cli, request, { ...result, dryRun, wouldWrite: [...written] });
  if (spec.mode === 'observe') {
    cli.output.say(`${name} is in mode observe: its endpoints stay unchanged.`);
  } else if (result.stillPublished && !dryRun) {
    cli.output.say(
      pause === undefined
        ? 'The kubernetes-service loop removes it at its next tick. Run the command again to check.'
        : `${name} is ${describePause(pause)}. Run the command again to remove it during the pause.`,
    );
  }
  if (cli.ended.aborted && !dryRun) return EXIT.interrupted;
  return result.stillPublished || dryRun ? EXIT.findings : EXIT.fine;
}

interface Reported extends Deregistered {
  readonly dryRun: boolean;
  readonly wouldWrite: readonly string[];
}

function report(
  { output }: Cli,
  { cluster, address }: { readonly cluster: string; readonly address: string },
  { outcome: _, dryRun, ...result }: Reported,
): void {
  const { untilMs, stillPublished, changes, wouldWrite, error } = result;
  const until = isoTime(untilMs);
  const title = dryRun
    ? `${address} would be withdrawn from ${cluster} until ${until} (dry run)`
    : stillPublished
      ? `${address} is withdrawn until ${until}, and still published`
      : `${address} is removed from the endpoints of ${cluster}, and withdrawn until ${until}`;
  output.object({ kind: 'Deregistration', cluster, address, ...(dryRun && { dryRun }), ...result }, () => [
    title,
    ...changes.map((change) => `  ${change}`),
    ...wouldWrite.map((description) => `  would ${description}`),
    ...(error === undefined ? [] : [`  ${error.message}`]),
  ]);
}

async function refusal(
  cli: Cli,
  spec: ClusterSpec,
  address: string,
  result: Exclude<DeregisterResult, Deregistered>,
): Promise<Error> {
  if (result.outcome === 'notRegistered' && spec.endpoints.reconciler !== 'none') {
    return notAnApiServer(cli, spec, address);
  }
  if (result.outcome === 'refused' && result.reason === 'lastLiveAddress') {
    return configurationError(
      `${address} is the last live address of ${spec.name}: without it the kubernetes Service has no endpoints. Wait for another ("kbctl get leases ${spec.name}"), or use --last-one. Nothing was changed.`,
    );
  }
  const isUnchanged = result.outcome === 'refused' && result.reason !== 'undone';
  return configurationError(`${result.message}.${isUnchanged ? ' Nothing was changed.' : ''}`);
}

async function notAnApiServer(cli: Cli, spec: ClusterSpec, address: string): Promise<Error> {
  const { table } = await cli.openTable();
  const { leases } = await readLeases(table, spec.name);
  const leased = leases.map((lease) => lease.address);
  return configurationError(`${address} is not an API server of ${spec.name}: ${listAddresses(spec, leased)}`);
}

function parseWithdrawal(text: string): number {
  const ms = parseDuration(text);
  if (ms <= 24 * HOUR_MS) return ms;
  throw new InvalidArgumentError('A withdrawal lasts at most 24h.');
}

/** Ends a withdrawal in the table. The next tick of kubernetes-service publishes the address if the API server answers. */
async function undo(cli: Cli, name: string, text: string): Promise<ExitCode> {
  const { table, clock } = await cli.openForWriting();
  const cluster = await registeredCluster(table, name);
  const { spec } = cluster;
  const isPaused = (await readPauseOf(cli, cluster)) !== undefined;
  const { undoDeregister } = await import('../../lib/deregister/deregister.ts');
  const result = await undoDeregister({ spec, table, address: text, nowMs: clock.nowMs });
  if (result.outcome === 'notAnAddress') {
    throw configurationError(`"${text}" is not an IP address. Nothing was changed.`);
  }
  if (result.outcome === 'notRegistered') throw await notAnApiServer(cli, spec, text);
  const { address } = result;
  const wasUntilMs = result.outcome === 'undone' ? result.wasUntilMs : undefined;
  const next =
    spec.endpoints.reconciler === 'none'
      ? 'nothing is published (reconciler none)'
      : spec.mode === 'observe'
        ? 'nothing is published (mode observe)'
        : `the ${isPaused ? 'first tick after the pause' : 'next tick'} publishes it if it answers`;
  cli.output.object({ kind: 'WithdrawalEnd', cluster: name, address, wasUntilMs }, () => [
    result.outcome === 'undone'
      ? `${address} is no longer withdrawn from ${name}: ${next}`
      : `${address} is not withdrawn from ${name}: nothing was changed`,
  ]);
  return EXIT.fine;
}
