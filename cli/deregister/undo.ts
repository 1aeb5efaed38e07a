import { type UndoResult, undoDeregister } from '../../lib/api-servers/deregister.ts';
import type { ClusterSpec } from '../../lib/cluster/cluster-spec.ts';
import { listLeases } from '../../lib/table/leases.ts';
import type { Cli, CommandTable } from '../cli.ts';
import { configurationError } from '../errors.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { knownInstead } from '../unknown-address.ts';

/** `kbctl deregister CLUSTER ADDRESS --undo`: only the table is written, and the loop does the rest. */
export async function undo(
  cli: Cli,
  { table, clock }: CommandTable,
  spec: ClusterSpec,
  text: string,
): Promise<ExitCode> {
  const result = await undoDeregister({ spec, table, address: text, nowMs: clock.nowMs });
  if (result.outcome === 'notAnAddress') {
    throw configurationError(`"${text}" is no IP address: name one published address. Nothing was changed.`);
  }
  if (result.outcome === 'notRegistered') {
    const leased = (await listLeases(table, spec.name)).map(({ lease }) => lease.address);
    const instead = knownInstead(spec, leased);
    throw configurationError(`${text} is no API server of ${spec.name}: ${instead}`);
  }
  const { address } = result;
  const wasUntil = result.outcome === 'undone' ? { wasUntil: new Date(result.wasUntilMs).toISOString() } : {};
  const document = { kind: 'WithdrawalEnd', cluster: spec.name, address, ...wasUntil };
  cli.output.object(document, () => [told(result, spec)]);
  return EXIT.fine;
}

function told(result: Extract<UndoResult, { address: string }>, { name, endpoints }: ClusterSpec): string {
  const { address } = result;
  if (result.outcome === 'notWithdrawn') return `${address} is not withdrawn from ${name}: nothing was changed`;
  const then =
    endpoints.reconciler === 'none'
      ? 'its reconciler is none, and nothing is published'
      : 'the next tick publishes it again, if it answers';
  return `${address} is withdrawn from ${name} no longer: ${then}`;
}
