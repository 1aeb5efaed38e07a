import { Command } from 'commander';
import { type Hold, isOver } from '../../lib/range/hold.ts';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import { formatAge } from '../../lib/util/age.ts';
import { defined, isoTime } from '../../lib/util/values.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { EXIT, type ExitCode } from '../errors.ts';
import { type IpAddress, readClaims, type ServiceUse } from '../item/claims.ts';
import { ITEM_NOUNS, type ItemKind, itemPlaceOf, nameOfKey } from '../item/item-place.ts';
import { type ItemStatus, itemStatus, readItemFacts, readServedRanges } from '../item/item-status.ts';
import { type ConnectionOptions, withConnectionOptions } from '../options.ts';
import type { Output } from '../output.ts';
import { registeredCluster } from '../registered.ts';
import { holdEnd, TAKEN_UP_BY } from '../status/columns.ts';
import type { Style } from '../terminal.ts';
import { wrapped } from '../text-table.ts';

interface Options extends GlobalOptions, ConnectionOptions {
  readonly services: boolean;
}

export function showCommand(act: Act): Command {
  return new Command('show')
    .description('Show details of a cluster IP or node port')
    .addCommand(showItem(act, 'ip'))
    .addCommand(showItem(act, 'port'));
}

function showItem(act: Act, kind: ItemKind): Command {
  const one = ITEM_NOUNS[kind];
  const command = new Command(kind)
    .description(`Show whether a ${one} is free or allocated, and its Services, hold or leak`)
    .argument('<cluster>', 'the name of the cluster')
    .argument('<value>', `the ${one}`)
    .option('--no-services', 'read only the table, not the Services of the cluster');
  return withConnectionOptions(command).action(
    act<Options>((cli, operands, options) => show(cli, kind, operands, options)),
  );
}

async function show(
  cli: Cli,
  kind: ItemKind,
  [name = '', value = '']: readonly string[],
  options: Options,
): Promise<ExitCode> {
  const { table, clock } = await cli.openTable();
  const cluster = await registeredCluster(table, name);
  const served = kind === 'ip' ? await readServedRanges(table, cluster.spec) : undefined;
  const place = itemPlaceOf(cluster.spec, kind, value, served);
  // The table is read after the Services, so that its data are not older than the list of Services.
  const read = options.services ? await readClaims(cli, cluster.spec, [place], options, true) : [];
  const [claims] = 'exitCode' in read ? [] : read;
  const facts = await readItemFacts(table, cluster, place);
  const status = itemStatus({ ...facts, ...defined({ claims }) });
  cli.output.object({ ...status, kind: kind === 'ip' ? 'ClusterIP' : 'NodePort', cluster: name }, () =>
    itemLines(status, cluster.spec, clock.nowMs(), cli.output),
  );
  if ('exitCode' in read) return read.exitCode;
  return status.faults.length > 0 || status.findings.length > 0 ? EXIT.findings : EXIT.fine;
}

const STATE_STYLES: Readonly<Record<ItemStatus['state'], Style>> = { free: 'green', taken: 'bold', unknown: 'dim' };

function itemLines(status: ItemStatus, spec: ClusterSpec, nowMs: number, output: Output): string[] {
  const { item, range, key, band, state, services, ipAddress, hold, strikes, findings, faults } = status;
  const line = (title: string, text: string, style?: Style) =>
    wrapped(text, output.textWidth, `  ${title.padEnd(9)} `).map((one) =>
      style === undefined ? one : output.paint(style, one),
    );
  const shownState = state === 'taken' && hold !== undefined && !services?.length ? 'held' : state;
  return [
    `${output.paint('bold', item)}  ${output.paint(STATE_STYLES[state], shownState)}`,
    ...line('range', `${range} (${nameOfKey(key)}), ${band} band${band === 'static' ? ' (allocated last)' : ''}`),
    ...line('written', savedText(status, spec, nowMs)),
    ...(services === undefined ? [] : line('services', servicesText(services, nowMs))),
    ...(ipAddress === undefined ? [] : line('ipaddress', withAge(parentText(ipAddress), ipAddress, nowMs))),
    ...(hold === undefined ? [] : line('hold', holdText(hold, spec, status, nowMs))),
    ...(strikes === undefined ? [] : line('leak', leakText(strikes, status), 'yellow')),
    ...faults.flatMap((fault) => line('wrong', fault, 'red')),
    ...findings.flatMap(({ type, message }) => line('last pass', `${type}: ${message}`, 'yellow')),
  ];
}

function servicesText(services: readonly ServiceUse[], nowMs: number): string {
  return services.map((claim) => withAge(claim.service, claim, nowMs)).join(', ') || 'none';
}

function parentText({ parent, managedBy }: IpAddress): string {
  return managedBy === undefined ? parent : `${parent}, managed by ${managedBy || 'nothing'}`;
}

function withAge(name: string, { createdAtMs }: Pick<ServiceUse, 'createdAtMs'>, nowMs: number): string {
  return createdAtMs === 0 ? name : `${name} (created ${formatAge(nowMs - createdAtMs)} ago)`;
}

function savedText(
  { allocator, savedAtMs, ready, loop }: ItemStatus,
  { name, mode }: ClusterSpec,
  nowMs: number,
): string {
  if (allocator === 'apiserver' && savedAtMs === undefined) {
    return `not in the table, which has no usage bitmap of this range: the API servers of ${name} allocate`;
  }
  const age = savedAtMs === undefined ? 'never' : `${formatAge(nowMs - savedAtMs)} ago`;
  if (allocator === 'apiserver') {
    return `${age}; the API servers of ${name} allocate, and the table holds what Services claimed`;
  }
  if (ready) return age;
  const next =
    mode === 'enforce' ? `wait for the next, or run "kbctl run-once ${loop} ${name}"` : 'its mode is observe';
  return `${age}; nothing can be allocated until an enforcing pass saves the range: ${next}`;
}

function holdText(hold: Hold, { name, allocator }: ClusterSpec, { loop }: ItemStatus, nowMs: number): string {
  const request = hold.requestId === undefined ? '' : `; request ${hold.requestId}`;
  const claim = allocator === 'table' ? `${TAKEN_UP_BY[hold.takenUpBy]} can claim it` : 'release it for its Service';
  const terms = `${claim}${request}`;
  if (hold.untilMs === undefined) return `by ${hold.owner}, without end; ${terms}`;
  const end = `${isoTime(hold.untilMs)} (${holdEnd(hold, nowMs)})`;
  if (!isOver(hold, nowMs)) return `by ${hold.owner} until ${end}; ${terms}`;
  return `by ${hold.owner}, expired at ${end}: the next enforcing pass of ${loop} in ${name} frees it unless a Service has it${request}`;
}

function leakText(strikes: 0 | 1 | 2, { loop }: ItemStatus): string {
  return `${strikes} of 3 strikes: the third enforcing pass of ${loop} without a Service frees it`;
}
