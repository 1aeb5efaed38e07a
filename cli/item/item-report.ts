import type { ClusterSpec } from '../../lib/cluster/cluster-spec.ts';
import { type Hold, isOver } from '../../lib/cluster/hold.ts';
import { formatAge } from '../../lib/status/age.ts';
import type { Output, Plain } from '../output.ts';
import { holdEnd, nameOfKey, TAKEN_UP_BY, timeLeft } from '../ranges/range-words.ts';
import type { Style } from '../terminal.ts';
import { wrapped } from '../text-table.ts';
import type { Claim, ItemClaims } from './claims.ts';
import type { ItemStatus, Leak } from './item-status.ts';

const WIDEST = 100;
const STATE_STYLES: Readonly<Record<ItemStatus['state'], Style>> = { free: 'green', taken: 'bold', unknown: 'dim' };

/** Returns the lines about an item. */
export function itemLines(status: ItemStatus, spec: ClusterSpec, nowMs: number, output: Output): string[] {
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
export function needsAttention({ faults, findings }: ItemStatus): boolean {
  return faults.length > 0 || findings.length > 0;
}

export function plainItem(status: ItemStatus, cluster: string): { readonly [field: string]: Plain | undefined } {
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
