import { type Hold, type HoldTerms, isOver } from '../../lib/range/hold.ts';
import { formatAge, formatDuration, timeLeft } from '../../lib/util/age.ts';
import type { Column } from '../text-table.ts';
import {
  type ApiServerStatus,
  type ClusterStatus,
  type FindingStatus,
  type Health,
  type LoopStatus,
  levelOfUse,
  type RangeStatus,
  wholeRanges,
} from './cluster-status.ts';

const CELLS = 10;
const PARTS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const;

/** Returns a bar with its percentage: `█████▍     54%`. A bar is empty only for 0, and full only for 100. */
function bar(percent: number | undefined): string {
  if (percent === undefined) return '';
  const eighths = Math.round((Math.min(Math.max(percent, 0), 100) / 100) * CELLS * 8);
  const shown = percent <= 0 ? 0 : percent >= 100 ? CELLS * 8 : Math.min(Math.max(eighths, 1), CELLS * 8 - 1);
  const drawn = '█'.repeat(Math.floor(shown / 8)) + PARTS[shown % 8];
  return `${drawn.padEnd(CELLS)} ${percentText(percent).padStart(4)}`;
}

/** Returns a percentage such as `0%`, `<1%` or `54%`. Only an unused range has 0, and only a full range has 100. */
export function percentText(percent: number): string {
  return percent > 0 && percent < 1 ? '<1%' : `${Math.floor(percent)}%`;
}

/** Returns the percentage to show: `usedPercent`, or the exact one if rounding made `usedPercent` 0 although items are in use. */
function shownPercent({ usedPercent, used, capacity }: RangeStatus): number {
  return usedPercent === 0 && used > 0 ? (100 * used) / capacity : usedPercent;
}

function fullest(status: ClusterStatus): number | undefined {
  return status.ranges.length === 0 ? undefined : Math.max(...wholeRanges(status).map(shownPercent));
}

export function amount(count: number): string {
  return count < Number.MAX_SAFE_INTEGER ? String(count) : '2^53 or more';
}

export function fleetColumns(nowMs: number): Column<ClusterStatus>[] {
  return [
    { title: 'NAME', text: ({ name }) => name },
    { title: 'HEALTH', text: ({ health }) => health, tone: ({ health }) => health },
    { title: 'MODE', text: ({ mode }) => mode, yields: true },
    {
      title: 'API SERVERS',
      text: ({ apiServers }) => `${apiServers.filter(({ state }) => state === 'active').length}/${apiServers.length}`,
    },
    { title: 'LAST PASS', text: ({ loops }) => lastPassAgo(loops, nowMs), yields: true },
    { title: 'FULLEST', text: (status) => bar(fullest(status)), percent: fullest, yields: true },
    { title: 'FINDINGS', text: ({ findingTotal }) => String(findingTotal) },
    { title: 'ATTENTION', text: (status) => attentionWords(status, nowMs), shrinks: true },
  ];
}

/**
 * Returns words such as `paused,duplicate,leak (3)`, or the time until the first passes if the health is `unknown`. The word
 * `paused` is omitted if the health is `paused`.
 */
function attentionWords({ attention, health, paused, loops }: ClusterStatus, nowMs: number): string {
  const firstPasses = loops.flatMap(({ firstPassAtMs = [] }) => firstPassAtMs);
  if (health === 'unknown') return `first passes in ${timeLeft(Math.max(...firstPasses) - nowMs)}`;
  const words = Map.groupBy(attention, ({ word }) => word);
  const counted = [...words].map(([word, same]) => (same.length === 1 ? word : `${word} (${same.length})`));
  return [...(paused !== undefined && health !== 'paused' ? ['paused'] : []), ...counted].join(',');
}

const LEASES: Readonly<Record<ApiServerStatus['state'], { readonly word: string; readonly tone: Health }>> = {
  active: { word: 'valid', tone: 'good' },
  expired: { word: 'expired', tone: 'unhealthy' },
  withdrawn: { word: 'withdrawn', tone: 'paused' },
  neverSeen: { word: 'never seen', tone: 'unknown' },
};

export function apiServerColumns(nowMs: number): Column<ApiServerStatus>[] {
  return [
    { title: 'ADDRESS', text: ({ address, host }) => address ?? host ?? '' },
    { title: 'LEASE', text: ({ state }) => LEASES[state].word, tone: ({ state }) => LEASES[state].tone },
    { title: 'REFRESHED', text: ({ refreshedAtMs }) => ago(refreshedAtMs, nowMs), yields: true },
    { title: 'ENDS', text: (server) => leaseEnd(server, nowMs) },
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

const LOOP_TONES: Readonly<Record<LoopStatus['state'], Health>> = {
  good: 'good',
  failing: 'unhealthy',
  late: 'unhealthy',
  neverRan: 'warning',
  paused: 'paused',
  unknown: 'unknown',
};

export function loopColumns(nowMs: number): Column<LoopStatus>[] {
  return [
    { title: 'LOOP', text: ({ loop }) => loop },
    {
      title: 'STATE',
      text: ({ state }) => (state === 'neverRan' ? 'never ran' : state),
      tone: ({ state }) => LOOP_TONES[state],
    },
    {
      title: 'LAST PASS',
      text: (loop) =>
        loop.firstPassAtMs === undefined
          ? lastPassAgo([loop], nowMs)
          : `first pass in ${timeLeft(loop.firstPassAtMs - nowMs)}`,
    },
    {
      title: 'TOOK',
      text: ({ lastPass }) => (lastPass === undefined ? '' : formatDuration(lastPass.durationMs)),
      yields: true,
    },
    { title: 'FINDINGS', text: ({ lastPass }) => String(lastPass?.findings ?? '') },
    { title: 'ERROR', text: ({ lastPass }) => errorText(lastPass?.error), shrinks: true },
  ];
}

function lastPassAgo(loops: readonly LoopStatus[], nowMs: number): string {
  const starts = loops.flatMap(({ lastPass, lastRanAtMs }) => lastRanAtMs ?? lastPass?.startedAtMs ?? []);
  return starts.length === 0 ? '' : ago(Math.max(...starts), nowMs);
}

/** Returns when a pass of a loop last succeeded. Not every pass is recorded, so the time may come from a lease. */
export function successAtMs({ state, lastRanAtMs, lastSuccessAtMs }: LoopStatus): number | undefined {
  return state === 'good' ? (lastRanAtMs ?? lastSuccessAtMs) : lastSuccessAtMs;
}

export function errorText(error: { readonly code: string; readonly message: string } | undefined): string {
  return error === undefined ? '' : `${error.code}: ${error.message}`;
}

function countText(count: number, atLeast = false): string {
  return atLeast && count > 0 ? `${count} or more` : String(count);
}

export const RANGE_COLUMNS: readonly Column<RangeStatus>[] = [
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
    percent: shownPercent,
    tone: ({ usedPercent }) => levelOfUse(usedPercent),
  },
  { title: 'USED', text: ({ used, capacity }) => `${used} of ${amount(capacity)}`, yields: true },
  { title: 'HELD', text: ({ held }) => String(held), yields: true },
  {
    title: 'LEAKING',
    text: ({ leaking, atLeast }) => countText(leaking, atLeast),
    tone: ({ leaking }) => (leaking > 0 ? 'warning' : undefined),
  },
  {
    title: 'DUPLICATE',
    text: ({ duplicates, atLeast }) => countText(duplicates, atLeast),
    tone: ({ duplicates }) => (duplicates > 0 ? 'unhealthy' : undefined),
  },
];

export function findingColumns(nowMs: number): Column<FindingStatus>[] {
  return [
    { title: 'FINDING', text: ({ type }) => type },
    { title: 'SERVICE', text: ({ service }) => service ?? '' },
    { title: 'ITEM', text: ({ item }) => item ?? '' },
    { title: 'SEEN', text: ({ seenAtMs }) => ago(seenAtMs, nowMs), yields: true },
    { title: 'MESSAGE', text: ({ message }) => message, shrinks: true },
  ];
}

/** `afterRelease`: true if a Service can get the item only after the owner has released the hold. */
export type HoldRow = Pick<RangeStatus, 'range'> & Hold & { readonly afterRelease?: true };

export function holdRows({ ranges }: Pick<ClusterStatus, 'ranges'>): HoldRow[] {
  return ranges.flatMap(({ key, range, holds }) => holds.map((hold) => ({ key, range, ...hold })));
}

export function holdColumns(nowMs: number): Column<HoldRow>[] {
  return [
    { title: 'RANGE', text: ({ range }) => range },
    { title: 'OWNER', text: ({ owner }) => owner, shrinks: true },
    { title: 'ENDS', text: (hold) => holdEnd(hold, nowMs) },
    {
      title: 'TAKEN UP BY',
      text: ({ takenUpBy, afterRelease }) => `${TAKEN_UP_BY[takenUpBy]}${afterRelease ? ', after release' : ''}`,
    },
    // This is the last column, so that a long list of items does not pad the other rows.
    { title: 'ITEMS', text: ({ items }) => items.join(','), shrinks: true },
  ];
}

export function holdEnd(hold: HoldTerms, nowMs: number): string {
  if (hold.untilMs === undefined) return 'never';
  return isOver(hold, nowMs) ? `${formatAge(nowMs - hold.untilMs)} ago` : `in ${timeLeft(hold.untilMs - nowMs)}`;
}

export const TAKEN_UP_BY: Readonly<Record<Hold['takenUpBy'], string>> = {
  any: 'any Service',
  owner: 'Services of the owner',
};

export function ago(atMs: number | undefined, nowMs: number): string {
  if (atMs === undefined) return '';
  const age = formatAge(nowMs - atMs);
  return age.startsWith('<') ? age : `${age} ago`;
}
