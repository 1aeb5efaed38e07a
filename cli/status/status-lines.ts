import type { Output } from '../output.ts';
import type { Style } from '../terminal.ts';
import { type Column, wrapped } from '../text-table.ts';
import { formatAge, formatDuration } from './age.ts';
import {
  type ApiServerStatus,
  type ClusterStatus,
  type FindingStatus,
  type Health,
  LEASE_WORDS,
  type LoopStatus,
  type RangeStatus,
  wholeRanges,
} from './cluster-status.ts';
import { isOneOfMany } from './loops-and-leases.ts';

const CELLS = 10;
/** Eighths of a cell. */
const PARTS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const;

/** Returns `█████▍     54%`. A bar is empty only for 0, and full only for 100. */
function bar(percent: number): string {
  const eighths = Math.round((Math.min(Math.max(percent, 0), 100) / 100) * CELLS * 8);
  const shown = percent <= 0 ? 0 : percent >= 100 ? CELLS * 8 : Math.min(Math.max(eighths, 1), CELLS * 8 - 1);
  const drawn = '█'.repeat(Math.floor(shown / 8)) + PARTS[shown % 8];
  const text = percent > 0 && percent < 1 ? '<1' : String(Math.floor(percent));
  return `${drawn.padEnd(CELLS)} ${text.padStart(3)}%`;
}

/** A small share of many items can be less than the tenth of a per cent of the figure. */
function shownPercent({ usedPercent, used, capacity }: RangeStatus): number {
  return usedPercent === 0 && used > 0 ? (100 * used) / capacity : usedPercent;
}

/** Returns the number as `show` writes it, or `2^53 or more`. */
export function amount(count: number, show: (count: number) => string = String): string {
  return count < Number.MAX_SAFE_INTEGER ? show(count) : '2^53 or more';
}

export function fleetColumns(nowMs: number): Column<ClusterStatus>[] {
  return [
    { title: 'NAME', text: ({ name }) => name },
    { title: 'HEALTH', text: ({ health }) => health, style: ({ health }) => HEALTH_STYLES[health] },
    { title: 'MODE', text: ({ mode }) => mode, yields: true },
    { title: 'ALLOCATOR', text: ({ allocator }) => allocator, wide: true },
    { title: 'OWNER', text: ({ owner }) => owner?.stack ?? '', wide: true },
    {
      title: 'API SERVERS',
      text: ({ apiServers }) => `${apiServers.filter(({ state }) => state === 'active').length}/${apiServers.length}`,
    },
    { title: 'LAST PASS', text: ({ loops }) => lastPassAgo(loops, nowMs), yields: true },
    {
      title: 'FULLEST',
      text: (status) => (status.ranges.length === 0 ? '' : bar(Math.max(...wholeRanges(status).map(shownPercent)))),
      yields: true,
    },
    { title: 'FINDINGS', text: ({ findings }) => String(findings.length) },
    { title: 'ATTENTION', text: attentionWords, shrinks: true },
  ];
}

/** Returns `paused,duplicate,leak (3)`: each word once. A pause comes first, unless it is the health. */
function attentionWords({ attention, health, paused }: ClusterStatus): string {
  const words = Map.groupBy(attention, ({ word }) => word);
  const counted = [...words].map(([word, same]) => (same.length === 1 ? word : `${word} (${same.length})`));
  return [...(paused !== undefined && health !== 'paused' ? ['paused'] : []), ...counted].join(',');
}

const HEALTH_STYLES: Readonly<Record<Health, Style>> = {
  bad: 'red',
  warning: 'yellow',
  unknown: 'dim',
  paused: 'cyan',
  good: 'green',
};

/** `get findings` prints all of them. */
const MOST_FINDINGS = 20;
const MOST_WRITES = 10;

export function statusLines(status: ClusterStatus, nowMs: number, output: Output): string[] {
  const { name, apiServers, loops, ranges, findings } = status;
  const section = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : ['', output.paint('bold', title), ...lines];
  const listed = (lines: readonly string[]) => [
    ...lines.slice(0, MOST_WRITES).flatMap((line) => wrapped(line, output.textWidth, '- ')),
    ...moreLine(lines.length - MOST_WRITES, `kbctl status ${name} -o yaml`),
  ];
  const rangeLines = ranges.length === 0 ? ['none was saved yet'] : output.table(RANGE_COLUMNS, ranges);
  const findingLines = [
    ...output.table(FINDING_COLUMNS, findings.slice(0, MOST_FINDINGS)),
    ...moreLine(findings.length - MOST_FINDINGS, `kbctl get findings ${name}`),
  ];
  return [
    ...headLines(status, nowMs, output),
    ...section('Needs attention', attentionLines(status, output)),
    ...section('API servers', output.table(apiServerColumns(nowMs), apiServers)),
    ...section('Loops', output.table(loopColumns(nowMs), loops)),
    ...section('Would write', listed(withheldLines(loops))),
    ...section('Last changes', listed(changeLines(loops, nowMs))),
    ...section('Ranges', rangeLines),
    ...section(`Findings of the last passes (${findings.length})`, findings.length === 0 ? [] : findingLines),
  ];
}

function moreLine(more: number, command: string): string[] {
  return more > 0 ? [`... and ${more} more: ${command}`] : [];
}

function headLines(status: ClusterStatus, nowMs: number, { paint }: Output): string[] {
  const { name, health, mode, allocator, generation, owner, paused } = status;
  const whose = owner && `, owned by stack ${owner.stack}`;
  const head = `${paint('bold', name)}  ${paint(HEALTH_STYLES[health], health)}  ${mode}, allocator ${allocator}, generation ${generation}${whose ?? ''}`;
  if (paused === undefined) return [head];
  const all = paused.all ? 'all clusters are ' : '';
  const until = `${new Date(paused.untilMs).toISOString()} (${formatAge(paused.untilMs - nowMs)} from now)`;
  return [head, `${all}paused until ${until} by ${paused.by}: ${paused.reason}`];
}

function attentionLines({ attention }: ClusterStatus, output: Output): string[] {
  return attention.flatMap(({ level, word, message, next }) => [
    ...wrapped(`${word}: ${message}`, output.textWidth, level === 'bad' ? '✗ ' : '! ').map((line) =>
      output.paint(HEALTH_STYLES[level], line),
    ),
    ...wrapped(next, output.textWidth, '  → '),
  ]);
}

export function apiServerColumns(nowMs: number): Column<ApiServerStatus>[] {
  return [
    { title: 'ADDRESS', text: ({ address, host }) => address ?? host ?? '' },
    { title: 'KIND', text: ({ kind }) => kind ?? 'not in the spec', wide: true },
    {
      title: 'LEASE',
      text: ({ state }) => LEASE_WORDS[state],
      style: ({ state }) => (state === 'active' ? 'green' : 'red'),
    },
    { title: 'REFRESHED', text: ({ refreshedAtMs }) => ago(refreshedAtMs, nowMs), yields: true },
    { title: 'ENDS', text: (server) => leaseEnd(server, nowMs) },
    { title: 'MISSES', text: ({ misses }) => String(misses ?? ''), wide: true },
    { title: 'BY', text: ({ source }) => source ?? '', wide: true },
    { title: 'LAST PROBE', text: ({ lastProbe }) => lastProbe ?? '', shrinks: true },
  ];
}

function leaseEnd({ state, expiresAtMs, withdrawnUntilMs }: ApiServerStatus, nowMs: number): string {
  if (state === 'withdrawn' && withdrawnUntilMs !== undefined) {
    return withdrawnUntilMs > nowMs ? `back in ${formatAge(withdrawnUntilMs - nowMs)}` : 'when it answers';
  }
  if (expiresAtMs === undefined || expiresAtMs <= 0) return '';
  return expiresAtMs > nowMs ? `in ${formatAge(expiresAtMs - nowMs)}` : `${formatAge(nowMs - expiresAtMs)} ago`;
}

function withheldLines(loops: readonly LoopStatus[]): string[] {
  return loops.flatMap(({ loop, wouldWrite = [] }) => wouldWrite.map((text) => `${loop}: would ${text}`));
}

function changeLines(loops: readonly LoopStatus[], nowMs: number): string[] {
  return loops.flatMap(({ loop, lastChange }) =>
    (lastChange?.changes ?? []).map((text) => `${loop}, ${ago(lastChange?.atMs, nowMs)}: ${text}`),
  );
}

const LOOP_STYLES: Readonly<Record<LoopStatus['state'], Style>> = {
  good: 'green',
  failing: 'red',
  late: 'red',
  neverRan: 'yellow',
  paused: 'cyan',
  unknown: 'dim',
};

export function loopColumns(nowMs: number): Column<LoopStatus>[] {
  return [
    { title: 'LOOP', text: ({ loop }) => loop },
    {
      title: 'STATE',
      text: ({ state }) => (state === 'neverRan' ? 'never ran' : state),
      style: ({ state }) => LOOP_STYLES[state],
    },
    { title: 'LAST PASS', text: (loop) => lastPassAgo([loop], nowMs) },
    {
      title: 'TOOK',
      text: ({ lastPass }) => (lastPass === undefined ? '' : formatDuration(lastPass.durationMs)),
      yields: true,
    },
    { title: 'EVERY', text: ({ intervalSeconds }) => formatAge(intervalSeconds * 1000), wide: true },
    { title: 'SUCCESS', text: (loop) => lastSuccessAgo(loop, nowMs), wide: true },
    { title: 'FINDINGS', text: ({ lastPass }) => String(lastPass?.findings ?? '') },
    { title: 'WOULD WRITE', text: ({ wouldWrite = [] }) => wouldWrite.join('; '), shrinks: true, wide: true },
    { title: 'ERROR', text: ({ lastPass }) => errorText(lastPass?.error), shrinks: true },
  ];
}

/** Returns the age of the latest pass. */
function lastPassAgo(loops: readonly LoopStatus[], nowMs: number): string {
  const starts = loops.flatMap(({ lastPass, lastRanAtMs }) => lastRanAtMs ?? lastPass?.startedAtMs ?? []);
  const isKnown = loops.some(({ lastRanAtMs }) => lastRanAtMs !== undefined);
  if (!isKnown && loops.some((loop) => isOneOfMany(loop, nowMs))) return '<1m ago';
  return starts.length === 0 ? '' : ago(Math.max(...starts), nowMs);
}

/** Returns the age of a loop's last success: if its last pass succeeded, a later run that leases show did too. */
function lastSuccessAgo({ state, lastRanAtMs, lastSuccessAtMs }: LoopStatus, nowMs: number): string {
  return ago(state === 'good' ? (lastRanAtMs ?? lastSuccessAtMs) : lastSuccessAtMs, nowMs);
}

function errorText(error: { readonly code: string; readonly message: string } | undefined): string {
  return error === undefined ? '' : `${error.code}: ${error.message}`;
}

export const RANGE_COLUMNS: Column<RangeStatus>[] = [
  {
    title: 'RANGE',
    text: ({ range, specRange }) => (specRange === undefined ? range : `${range} (not yet ${specRange})`),
  },
  {
    title: 'OF',
    text: ({ title, serviceCidr, ready }) => (serviceCidr && ready === false ? `${title}, not ready` : title),
    yields: true,
  },
  {
    title: 'FULL',
    text: (range) => bar(shownPercent(range)),
    style: ({ usedPercent }) => (usedPercent > 95 ? 'red' : usedPercent > 80 ? 'yellow' : undefined),
  },
  { title: 'USED', text: ({ used, capacity }) => `${used} of ${amount(capacity)}`, yields: true },
  { title: 'HELD', text: ({ held }) => String(held), yields: true },
  {
    title: 'LEAKING',
    text: ({ leaking }) => String(leaking),
    style: ({ leaking }) => (leaking > 0 ? 'yellow' : undefined),
  },
  {
    title: 'DUPLICATE',
    text: ({ duplicates }) => String(duplicates),
    style: ({ duplicates }) => (duplicates > 0 ? 'red' : undefined),
  },
  { title: 'RESERVED', text: ({ reserved }) => String(reserved), wide: true },
  { title: 'RECORD', text: ({ allocator }) => (allocator === 'table' ? 'this table' : 'the API servers'), wide: true },
  { title: 'READY', text: ({ ready }) => (ready === undefined ? '' : ready ? 'yes' : 'no'), wide: true },
];

const FINDING_COLUMNS: Column<FindingStatus>[] = [
  { title: 'FINDING', text: ({ type }) => type },
  { title: 'SERVICE', text: ({ service }) => service ?? '' },
  { title: 'MESSAGE', text: ({ message }) => message, shrinks: true },
];

export function ago(atMs: number | undefined, nowMs: number): string {
  return atMs === undefined ? '' : `${formatAge(nowMs - atMs)} ago`;
}
