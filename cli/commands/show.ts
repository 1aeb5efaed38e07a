import { Command } from 'commander';
import type { ClusterSpec } from '../../lib/cluster/cluster-spec.ts';
import { type Hold, isOver } from '../../lib/cluster/hold.ts';
import { formatAge } from '../../lib/status/age.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { EXIT, type ExitCode, worst } from '../errors.ts';
import { type Claim, type ItemClaims, readClaims } from '../item/claims.ts';
import { ITEM_NOUNS, type ItemKind, placeOf } from '../item/item-place.ts';
import { type ItemStatus, itemStatus, type Leak, readItemFacts } from '../item/item-status.ts';
import { type ConnectionOptions, withConnectionOptions, withExamples } from '../options.ts';
import type { Output, Plain } from '../output.ts';
import { holdEnd, nameOfKey, TAKEN_UP_BY, timeLeft } from '../ranges/range-words.ts';
import { registeredCluster } from '../registered.ts';
import type { Style } from '../terminal.ts';
import { wrapped } from '../text-table.ts';

interface Options extends GlobalOptions, ConnectionOptions {
  /** `false`: Services are not read. */
  readonly services: boolean;
}

/** `kbctl show ip|port CLUSTER VALUE`. */
export function showCommand(act: Act): Command {
  return new Command('show')
    .description('Show details of a cluster IP or node port')
    .addCommand(showItem(act, 'ip'))
    .addCommand(showItem(act, 'port'));
}

function showItem(act: Act, kind: ItemKind): Command {
  const { one, example } = ITEM_NOUNS[kind];
  const command = new Command(kind)
    .description(`Show whether a ${one} is free or allocated, and its Services, hold or leak`)
    .argument('<cluster>', 'the name of the cluster')
    .argument('<value>', `the ${one}`)
    .option('--no-services', 'read only the table, not the Services of the cluster');
  return withExamples(
    withConnectionOptions(command).action(act<Options>((cli, operands, options) => show(cli, kind, operands, options))),
    [`kbctl show ${kind} prod-eu-1 ${example}`, `kbctl show ${kind} prod-eu-1 ${example} --no-services -o json`],
  );
}

async function show(
  cli: Cli,
  kind: ItemKind,
  [name = '', value = '']: readonly string[],
  options: Options,
): Promise<ExitCode> {
  const { table } = await cli.openTable();
  const cluster = await registeredCluster(table, name);
  const place = placeOf(cluster.spec, kind, value);
  // The table is read after the Services, so that it is at least as new.
  const read = options.services ? await readClaims(cli, cluster.spec, [place], options, true) : [];
  const [claims] = 'exitCode' in read ? [] : read;
  const nowMs = await cli.nowMs();
  const facts = await readItemFacts(table, cluster, place, nowMs);
  const status = itemStatus({ ...facts, ...(claims && { claims }) }, nowMs);
  cli.output.object({ kind: kind === 'ip' ? 'ClusterIP' : 'NodePort', ...plainItem(status, name) }, () =>
    itemLines(status, cluster.spec, nowMs, cli.output),
  );
  return worst([needsAttention(status) ? EXIT.findings : EXIT.fine, 'exitCode' in read ? read.exitCode : EXIT.fine]);
}

const WIDEST = 100;
const STATE_STYLES: Readonly<Record<ItemStatus['state'], Style>> = { free: 'green', taken: 'bold', unknown: 'dim' };

/** Returns the lines about an item. */
function itemLines(status: ItemStatus, spec: ClusterSpec, nowMs: number, output: Output): string[] {
  const { place, state, hold, findings, faults } = status;
  const ipAddress = status.claims?.ipAddress;
  const width = Math.min(output.columns ?? WIDEST, WIDEST);
  const line = (title: string, text: string, style?: Style) =>
    wrapped(text, width, `  ${title.padEnd(9)} `).map((one) => (style === undefined ? one : output.paint(style, one)));
  return [
    `${output.paint('bold', place.item)}  ${output.paint(STATE_STYLES[state], stateText(status))}`,
    ...line('range', rangeText(status)),
    ...line('written', savedText(status, spec, nowMs)),
    ...(status.claims === undefined ? [] : line('services', servicesText(status.claims, nowMs))),
    ...(ipAddress === undefined ? [] : line('ipaddress', withAge(ipAddress.parent, ipAddress, nowMs))),
    ...(hold === undefined ? [] : line('hold', holdText(hold, spec, status, nowMs))),
    ...(status.leak === undefined ? [] : line('leak', leakText(status.leak, status, spec, nowMs), 'yellow')),
    ...faults.flatMap((fault) => line('wrong', fault, 'red')),
    ...findings.flatMap(({ type, message }) => line('last pass', `${type}: ${message}`, 'yellow')),
  ];
}

/** Whether action may be required. */
function needsAttention({ faults, findings }: ItemStatus): boolean {
  return faults.length > 0 || findings.length > 0;
}

function plainItem(status: ItemStatus, cluster: string): { readonly [field: string]: Plain | undefined } {
  const { place, hold, leak, claims } = status;
  return {
    cluster,
    item: place.item,
    state: status.state,
    key: place.key,
    range: place.range,
    band: status.band,
    allocator: status.allocator,
    ready: status.ready,
    savedAt: iso(status.savedAtMs),
    services: claims?.services.map(({ service }) => service),
    serviceCreatedAt: claims?.services.map(({ createdAtMs }) => iso(createdAtMs) ?? null),
    ipAddress: claims?.ipAddress && { parent: claims.ipAddress.parent, createdAt: iso(claims.ipAddress.createdAtMs) },
    hold: hold && {
      owner: hold.owner,
      until: iso(hold.untilMs),
      takenUpBy: hold.takenUpBy,
      requestId: hold.requestId,
    },
    leak: leak && { strikes: leak.strikes, freedAtEarliest: iso(leak.freedAtEarliestMs) },
    findings: status.findings.map(({ type, message, service }) => ({ type, message, service })),
    faults: [...status.faults],
  };
}

function stateText({ state, hold, claims }: ItemStatus): string {
  return state === 'taken' && hold !== undefined && !claims?.services.length ? 'held' : state;
}

function servicesText({ services }: ItemClaims, nowMs: number): string {
  return services.map((claim) => withAge(claim.service, claim, nowMs)).join(', ') || 'none';
}

function withAge(name: string, { createdAtMs }: Pick<Claim, 'createdAtMs'>, nowMs: number): string {
  return createdAtMs === undefined ? name : `${name} (created ${formatAge(nowMs - createdAtMs)} ago)`;
}

function rangeText({ place, band }: ItemStatus): string {
  const when = band === 'static' ? ' (allocated last)' : '';
  return `${place.range} (${nameOfKey(place.key)}), ${band} band${when}`;
}

function savedText(
  { allocator, savedAtMs, ready, place }: ItemStatus,
  { name, mode }: ClusterSpec,
  nowMs: number,
): string {
  const age = savedAtMs === undefined ? 'never' : `${formatAge(nowMs - savedAtMs)} ago`;
  if (allocator === 'apiserver') {
    return `${age}; the API servers of ${name} allocate, and the table holds what Services claimed`;
  }
  if (ready) return age;
  const next =
    mode === 'enforce' ? `wait for the next, or run "kbctl run-once ${place.loop} ${name}"` : 'its mode is observe';
  return `${age}; nothing can be allocated until an enforcing pass saves the range: ${next}`;
}

function holdText(hold: Hold, { name }: ClusterSpec, { place }: ItemStatus, nowMs: number): string {
  const by = `by ${hold.owner}`;
  const claimants = `${TAKEN_UP_BY[hold.takenUpBy]} can claim it`;
  const request = hold.requestId === undefined ? '' : `; request ${hold.requestId}`;
  if (hold.untilMs === undefined) return `${by}, without end; ${claimants}${request}`;
  const end = `${new Date(hold.untilMs).toISOString()} (${holdEnd(hold, nowMs)})`;
  if (!isOver(hold, nowMs)) return `${by} until ${end}; ${claimants}${request}`;
  return `${by}, expired at ${end}: the next enforcing pass of ${place.loop} in ${name} frees it unless a Service has it${request}`;
}

function leakText({ strikes, freedAtEarliestMs }: Leak, { place }: ItemStatus, { mode }: ClusterSpec, nowMs: number) {
  const seen = strikes === 0 ? 'no Service has it' : `${strikes} of 3 strikes`;
  if (freedAtEarliestMs === undefined) {
    return `${seen}; nothing is freed while passes ${mode === 'observe' ? 'only observe' : 'are paused'}`;
  }
  const left = 3 - strikes;
  const passes = left === 1 ? 'the next pass' : `${left} more passes`;
  const when = `${new Date(freedAtEarliestMs).toISOString()} (${timeLeft(freedAtEarliestMs - nowMs)} from now)`;
  return `${seen}; ${passes} of ${place.loop} without a Service ${left === 1 ? 'frees' : 'free'} it, not before ${when}`;
}

function iso(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}
