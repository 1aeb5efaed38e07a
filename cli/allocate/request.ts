import { InvalidArgumentError } from 'commander';
import type { Answer } from '../../lib/allocate/answer.ts';
import { type AllocateRequest, requestShape } from '../../lib/allocate/request.ts';
import { isRefused, refused } from '../../lib/allocator/refusal.ts';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import { mayEndHoldsIn } from '../../lib/loops/end-holds.ts';
import { startDeadline } from '../../lib/runtime/deadline.ts';
import { shapeFaults } from '../../lib/spec/shapes.ts';
import { TableError } from '../../lib/table/key-value-table.ts';
import { readRunRecord } from '../../lib/table/run-records.ts';
import { logOnly, type Telemetry, type TelemetryFactory } from '../../lib/telemetry/telemetry.ts';
import { attempt } from '../../lib/util/values.ts';
import type { Cli } from '../cli.ts';
import { CliError, EXIT, type ExitCode, usageError } from '../errors.ts';
import { type ConnectionOptions, parseDuration, userName } from '../options.ts';
import type { PassEnvironment } from '../pass-environment.ts';
import { completeAlways } from '../terminal.ts';

/** The time limit of the command, slightly longer than the deadline of the request itself. */
const LONGEST_MS = 30_000;

/**
 * Runs a request as the function `allocate` does, but with the user's rights. Ctrl-C does not end a request that has begun.
 * @param next the user's next step if the outcome is unknown or access is denied. The error's message ends with this text
 * @throws CliError for an invalid request; TableError or ClusterError if the table or the API server fails
 */
export async function runRequest(
  cli: Cli,
  request: AllocateRequest,
  next: string,
  connection: ConnectionOptions,
): Promise<Answer> {
  const { success, error: faults } = requestShape.safeParse(request);
  if (!success) throw usageError(`${shapeFaults(faults, 'the request')}.`);
  const opened = await cli.openTable();
  const { table } = opened;
  const { nowMs } = opened.clock;
  const environment = { nowMs, startDeadline, telemetry: warningsOf(cli), table: opened.tableUntil };
  const endMs = nowMs() + LONGEST_MS;
  const { allocation } = await import('../../lib/allocate/allocation.ts');
  const { openServiceCidrs } = await import('./open-service-cidrs.ts');
  let clusters: PassEnvironment | undefined;
  const handler = allocation({
    openHeld: async (spec, range, { signal, ...options }) => {
      const { passEnvironment } = await import('../pass-environment.ts');
      clusters ??= await passEnvironment(cli, opened, connection);
      const warn = (text: string) => cli.output.say(`${spec.name}: ${text}`);
      const { kubernetes } = await clusters.environment.connect(spec, { loop: 'cluster-ip-repair', signal, warn });
      const held = await openServiceCidrs(kubernetes, spec, range, options);
      const last = await readRunRecord(table, spec.name, 'cluster-ip-repair');
      const isEnded =
        request.operation !== 'allocate' || request.hold?.until === 'forever' || mayEndHoldsIn(last?.record.state);
      const fault = `the passes of cluster ${spec.name} may not delete IPAddresses, or none has recorded yet that it may: this hold would never end. Allow them "create" and "delete" of "ipaddresses" and wait for the next pass of cluster-ip-repair, or use --hold forever`;
      return isRefused(held) || isEnded ? held : refused('NotReady', fault);
    },
  });
  try {
    return await completeAlways(() =>
      handler(request, { environment, getRemainingTimeInMillis: () => endMs - nowMs() }),
    );
  } catch (error) {
    const unknown = `Its outcome is unknown: ${next}`;
    if (error instanceof ClusterError && error.code !== 'BadKubeconfig') {
      const isRefused = error.code === 'Forbidden' || error.code === 'Unauthorized';
      const after = isRefused ? `Once this is allowed, ${next}` : unknown;
      throw new ClusterError(error.code, `${error.message} ${after}`, { cause: error });
    }
    if (!(error instanceof TableError)) throw error;
    const { code, message } = error.cause instanceof TableError ? error.cause : error;
    throw new TableError(code, `${message} ${unknown}`, { cause: error });
  } finally {
    await clusters?.[Symbol.asyncDispose]();
  }
}

/** The exit codes of refusals. Every other refusal has the exit code `findings`. */
const EXIT_CODES: Readonly<Record<string, ExitCode>> = {
  BadHold: EXIT.usage,
  RequestIdTaken: EXIT.usage,
  MismatchedRange: EXIT.configuration,
  NoSecondaryRange: EXIT.configuration,
  NotReady: EXIT.configuration,
  NotRegistered: EXIT.configuration,
  NotSupported: EXIT.configuration,
  ObserveOnly: EXIT.configuration,
};

/** @throws CliError if the request was refused. The error's message contains `result` after the reason. */
export function throwIfRefused({ cluster, items, error, outcome }: Answer, result: string): void {
  if (outcome === 'done') return;
  const refused = items.find((item) => item.error !== undefined && item.value !== undefined);
  const what = refused?.value === undefined ? '' : `${refused.value}: `;
  const { code = '', message = 'it was refused' } = error ?? {};
  // Upstream's message for a range that no pass has saved yet contains no next step.
  const isUnsaved = code === 'MismatchedRange' || (code === 'NotReady' && message.endsWith(' at this time'));
  const loop = items[0]?.range === 'servicenodeports' ? 'node-port-repair' : 'cluster-ip-repair';
  const pass = `An enforcing pass has to save the range first: wait for the next one, or run "kbctl run-once ${loop} ${cluster}".`;
  const next = isUnsaved ? ` ${pass}` : '';
  throw new CliError(EXIT_CODES[code] ?? EXIT.findings, `${what}${message}. ${result}${next}`);
}

/** Returns telemetry that prints a warning for each item whose release failed. Prints no refusals: the answer has them. */
function warningsOf({ output }: Cli): TelemetryFactory {
  const log: Telemetry['log'] = (level, _message, { errors } = {}) => {
    // An error of the whole request is not printed here, because it is also thrown.
    if (level !== 'warn') return;
    for (const error of Array.isArray(errors) ? errors : []) output.say(`warning: ${error}`);
  };
  return () => logOnly(log);
}

/** A duration in milliseconds, or `forever`. */
export type HoldFor = 'forever' | number;

const LONGEST_OWNER = 63;

/** @throws InvalidArgumentError of commander */
export function parseHoldFor(text: string): HoldFor {
  const parsed = text === 'forever' ? text : attempt(() => parseDuration(text));
  if (parsed !== undefined) return parsed;
  throw new InvalidArgumentError('Use a duration such as 15m, 1h30m or 2d, at most ten years, or "forever".');
}

export function ownerFrom(name: string = userName()): string {
  const fit = name.replace(/[^A-Za-z0-9._-]+/g, '-').slice(0, LONGEST_OWNER);
  return /[A-Za-z0-9](?:.*[A-Za-z0-9])?/.exec(fit)?.[0] ?? 'kbctl';
}
