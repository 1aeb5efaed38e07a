import { InvalidArgumentError } from 'commander';
import type { Answer } from '../../lib/allocate/answer.ts';
import type { AllocateRequest } from '../../lib/allocate/request.ts';
import { AllocatorError } from '../../lib/allocator/errors.ts';
import { badHold } from '../../lib/cluster/hold.ts';
import { createEnvironment } from '../../lib/environment/create-environment.ts';
import { TableError } from '../../lib/table/errors.ts';
import type { TelemetryFactory } from '../../lib/telemetry/telemetry.ts';
import type { Cli } from '../cli.ts';
import { CliError, EXIT, type ExitCode, usageError } from '../errors.ts';
import { parseDuration, userName } from '../options.ts';
import { whateverIsRead } from '../terminal.ts';

/** A little more than the request gives itself. */
const LONGEST_MS = 30_000;

/**
 * Runs a request as the function does, with this person's right on the table. It is not cut off by Ctrl-C: half of it
 * would have to be taken back.
 * @throws TableError when nobody can tell how far it came; its message says `whatThen`.
 */
export async function runRequest(cli: Cli, request: AllocateRequest, whatThen: string): Promise<Answer> {
  const { tableUntil, clock } = await cli.openTable();
  const { nowMs } = clock;
  const { environment } = createEnvironment({
    nowMs,
    telemetry: warningsOf(cli),
    reportingInstance: 'kbctl',
    table: tableUntil,
    loadKubeconfig: noApiServer,
  });
  const endMs = nowMs() + LONGEST_MS;
  const { allocation } = await import('../../lib/allocate/allocation.ts');
  try {
    return await whateverIsRead(() =>
      allocation()(request, { environment, getRemainingTimeInMillis: () => endMs - nowMs() }),
    );
  } catch (error) {
    if (!(error instanceof TableError)) throw error;
    const { code, message } = error.cause instanceof TableError ? error.cause : error;
    throw new TableError(code, `${message} Nobody can tell how far it came: ${whatThen}`, { cause: error });
  }
}

/** Who did what they could not know: the person named what is not, or the cluster is not as it should be. */
const EXIT_CODES: Readonly<Record<string, ExitCode>> = {
  BadHold: EXIT.usage,
  RequestIdTaken: EXIT.usage,
  MismatchedRange: EXIT.configuration,
  NoSecondaryRange: EXIT.configuration,
  NotReady: EXIT.configuration,
  NotRegistered: EXIT.configuration,
  ObserveOnly: EXIT.configuration,
};

/** @returns why it was refused; `undefined` when it was done. */
export function refusalOf({ cluster, items, error, outcome }: Answer, andSo: string): CliError | undefined {
  if (outcome === 'done') return undefined;
  const guilty = items.find((item) => item.error !== undefined && item.value !== undefined);
  const what = guilty?.value === undefined ? '' : `${guilty.value}: `;
  const { code = '', message = 'it was refused' } = error ?? {};
  const next = isUnsaved(code, message) ? ` ${passFirst(cluster, items[0]?.range)}` : '';
  return new CliError(EXIT_CODES[code] ?? EXIT.findings, `${what}${message}. ${andSo}${next}`);
}

/** The original's words name no next step: its API servers repair by themselves. */
function isUnsaved(code: string, message: string): boolean {
  return code === 'MismatchedRange' || (code === 'NotReady' && message.endsWith(' at this time'));
}

function passFirst(cluster: string, range: string | undefined): string {
  const loop = range === 'servicenodeports' ? 'node-port-repair' : 'cluster-ip-repair';
  return `An enforcing pass has to save the range first: wait for the next one, or run "kbctl run-once ${loop} ${cluster}".`;
}

/** What was left behind is told; what was refused is the answer. */
function warningsOf(cli: Cli): TelemetryFactory {
  return () => ({
    log: (level, _, { errors } = {}) => {
      if (level !== 'warn' || !Array.isArray(errors)) return;
      for (const error of errors as readonly string[]) cli.output.say(`warning: ${error}`);
    },
    count: () => {},
    sample: () => {},
    flush: () => {},
  });
}

function noApiServer(): never {
  throw new Error('A request to allocate asks no API server.');
}

/** For good, or for milliseconds. */
export type HoldFor = 'forever' | number;

const LONGEST_OWNER = 63;

/** `1h`, `forever`. @throws InvalidArgumentError of commander, whose message is shown beside the option. */
export function parseHoldFor(text: string): HoldFor {
  if (text === 'forever') return 'forever';
  try {
    return parseDuration(text);
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    throw new InvalidArgumentError(`${error.message} For good is "forever".`);
  }
}

/** @throws CliError for an owner that no hold can have. */
export function checkedOwner(owner: string): string {
  const bad = badHold({ owner, takenUpBy: 'any' });
  if (bad instanceof AllocatorError) throw usageError(`--owner: ${bad.message}.`);
  return owner;
}

/** The name of whoever runs the command, as far as an owner may be called so. */
export function ownerFrom(name: string = userName()): string {
  const fit = name.replace(/[^A-Za-z0-9._-]+/g, '-').slice(0, LONGEST_OWNER);
  return /[A-Za-z0-9](?:.*[A-Za-z0-9])?/.exec(fit)?.[0] ?? 'kbctl';
}
