import type { FindingType } from '../../lib/cluster/finding.ts';
import { pauseInForce } from '../../lib/dispatch/due.ts';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import { findingCounts } from '../../lib/table/run-records.ts';
import { formatAge } from '../../lib/util/age.ts';
import { defined, isoTime } from '../../lib/util/values.ts';
import { explain, hintFor } from '../explain/explanations.ts';
import {
  type ApiServerStatus,
  type Attention,
  type ClusterStatus,
  type FindingStatus,
  type Health,
  type LoopStatus,
  levelOfUse,
  type PauseStatus,
  wholeRanges,
} from './cluster-status.ts';
import { errorText } from './columns.ts';
import { apiServerStatuses, type LoopsHealth, loopsHealth } from './loops-and-leases.ts';
import { rangeStatuses } from './range-status.ts';
import type { StatusInputs } from './read-inputs.ts';

export function workOutStatus(inputs: StatusInputs, nowMs: number): ClusterStatus {
  const { spec, generation, owner } = inputs.cluster;
  const apiServers = apiServerStatuses(spec, inputs.leases, nowMs);
  const health = loopsHealth(inputs, apiServers, nowMs);
  const { ranges, unreadable: unreadableRanges } = rangeStatuses(inputs, nowMs);
  const findings = findingsOf(inputs);
  const unreadable = [...inputs.unreadable.map(({ message }) => message), ...unreadableRanges];
  const attention = attentionFor({ inputs, health, apiServers, ranges, findings, unreadable, nowMs });
  const paused = pauseOf(inputs, nowMs);
  return {
    name: spec.name,
    mode: spec.mode,
    allocator: spec.allocator,
    generation,
    ...defined({ owner, paused }),
    health: healthOf(attention, health),
    attention,
    apiServers,
    loops: health.loops,
    ranges,
    findings,
    ...allFindings(inputs),
    unreadable,
  };
}

/** Returns the pause of the cluster. A pause of all clusters has priority: `resume` of this cluster does not end that pause. */
function pauseOf({ cluster, pausedAll }: StatusInputs, nowMs: number): PauseStatus | undefined {
  const pause = pauseInForce([pausedAll, cluster.paused], nowMs);
  return pause && { untilMs: pause.untilMs, reason: pause.reason, by: pause.by, all: pause === pausedAll };
}

function findingsOf({ cluster, records }: StatusInputs): FindingStatus[] {
  return LOOPS.flatMap((loop) => {
    const { findings = [], startedAtMs = 0 } = records[loop] ?? {};
    return findings.map(
      (finding): FindingStatus => ({
        loop,
        ...finding,
        seenAtMs: startedAtMs,
        resolution: hintFor(finding.type, cluster.spec, finding),
      }),
    );
  });
}

function allFindings({ records }: StatusInputs): Pick<ClusterStatus, 'findingTotal' | 'findingCounts'> {
  const counts = LOOPS.flatMap((loop) => [...(records[loop] === undefined ? [] : findingCounts(records[loop]))]);
  const byType = [...Map.groupBy(counts, ([type]) => type)];
  const sumOf = (some: typeof counts) => some.reduce((sum, [, count]) => sum + count, 0);
  return {
    findingTotal: sumOf(counts),
    findingCounts: Object.fromEntries(byType.map(([type, some]) => [type, sumOf(some)])),
  };
}

function healthOf(attention: readonly Attention[], { loops, paused }: LoopsHealth): Health {
  if (attention.some(({ level }) => level === 'unhealthy')) return 'unhealthy';
  if (attention.length > 0) return 'warning';
  if (paused) return 'paused';
  return loops.some(({ state }) => state === 'neverRan') ? 'unknown' : 'good';
}

interface Parts extends Pick<ClusterStatus, 'apiServers' | 'ranges' | 'findings' | 'unreadable'> {
  readonly inputs: StatusInputs;
  readonly health: LoopsHealth;
  readonly nowMs: number;
}

/** The findings about probes, which are outdated during a pause. */
const OF_PROBES: ReadonlySet<FindingType> = new Set(['noLiveLease', 'oddProbe'] as const);

/** A problem. Without `next`, the next step is the hint for `word`. */
type Problem = Omit<Attention, 'next'> & Partial<Pick<Attention, 'next'>>;

function attentionFor(parts: Parts): Attention[] {
  const { spec } = parts.inputs.cluster;
  const all = [
    ...aboutLoops(parts),
    ...parts.unreadable.map((message): Problem => ({ level: 'unhealthy', word: 'unreadable', message })),
    ...aboutLeases(parts),
    ...aboutFindings(parts),
    ...aboutRanges(parts),
  ].map(({ level, word, message: text, next = hintFor(word, spec) }): Attention => {
    return { level, word, message: text.replace(/[\s\p{Cc}]+/gu, ' ').trim(), next };
  });
  return [...all.filter(({ level }) => level === 'unhealthy'), ...all.filter(({ level }) => level === 'warning')];
}

/** Returns one problem for each cause: loops that fail for the same reason are one problem. */
function aboutLoops({ health: { loops, overdue }, nowMs }: Parts): Problem[] {
  const isOverdue = ({ loop }: LoopStatus) => overdue.includes(loop);
  const bad = loops.filter(
    (status) => ['failing', 'late'].includes(status.state) || (status.state === 'neverRan' && isOverdue(status)),
  );
  // The message of an error without a server quotes its request, so quoted texts are removed before messages are compared.
  const causeOf = ({ state, lastPass }: LoopStatus) =>
    state === 'failing' ? (lastPass?.error?.server ?? errorText(lastPass?.error).replaceAll(/"[^"]*"/g, '')) : state;
  return [...Map.groupBy(bad, causeOf).values()].map((alike): Problem => {
    const { state = 'late' } = alike[0] ?? {};
    return {
      level: state !== 'failing' || alike.some(isOverdue) ? 'unhealthy' : 'warning',
      word: state,
      message: state === 'failing' ? failureOf(alike) : alike.map((loop) => lateness(loop, nowMs)).join('. '),
    };
  });
}

function failureOf(alike: readonly LoopStatus[]): string {
  const most = Math.max(...alike.map(({ failuresInARow }) => failuresInARow));
  const times = most > 1 ? ` ${alike.length > 1 ? 'up to ' : ''}${most} times in a row` : '';
  return `${alike.map(({ loop }) => loop).join(', ')} failed${times}: ${errorText(alike[0]?.lastPass?.error)}`;
}

function lateness({ loop, lastPass, intervalSeconds }: LoopStatus, nowMs: number): string {
  const ran = lastPass === undefined ? 'has never run' : `ran ${formatAge(nowMs - lastPass.startedAtMs)} ago`;
  return `${loop} ${ran}; it is due every ${formatAge(intervalSeconds * 1000)}`;
}

/**
 * If the last pass found no active lease, reports this. Otherwise reports each API server that has no lease or an expired lease,
 * but only after a recent pass, or as of the last pass before a pause, because the leases are outdated without passes.
 */
function aboutLeases({ inputs, health, apiServers, findings, nowMs }: Parts): Problem[] {
  const loop = health.loops.find((status) => status.loop === 'kubernetes-service');
  if (inputs.cluster.spec.endpoints.reconciler === 'none' || findings.some(({ type }) => type === 'noLiveLease'))
    return [];
  if (health.withoutLiveLease) {
    const reasons = ['no API server has a valid lease', 'the endpoints stay unchanged', ...notLive(apiServers, nowMs)];
    return [{ level: 'unhealthy', word: 'noLiveLease', message: reasons.join('; ') }];
  }
  const { state: loopState, lastPass } = loop ?? {};
  if (loopState !== 'good' && loopState !== 'failing' && loopState !== 'paused') return [];
  // During a pause leases expire, and added API servers are not probed: only the result of the last pass counts.
  const isKnown = ({ state, expiresAtMs = 0 }: ApiServerStatus) =>
    loopState !== 'paused' || (state === 'expired' && expiresAtMs <= (lastPass?.startedAtMs ?? 0));
  return (['expired', 'neverSeen'] as const).flatMap((word) => {
    const servers = apiServers.filter((server) => server.kind && server.state === word && isKnown(server));
    return notLive(servers, nowMs).map((line): Problem => ({ level: 'warning', word, message: `API server ${line}` }));
  });
}

/** Returns a line for each API server. More than three API servers that differ only in their addresses are one line. */
function notLive(servers: readonly ApiServerStatus[], nowMs: number): string[] {
  const lines = servers.map((server) => ({
    name: server.address ?? server.host ?? '',
    line: whyNotLive(server, nowMs),
  }));
  return [...Map.groupBy(lines, ({ name, line }) => line.replaceAll(name, '')).values()].flatMap((alike) =>
    alike.length > 3 ? `${alike[0]?.line} (and ${alike.length - 1} more)` : alike.map(({ line }) => line),
  );
}

function whyNotLive(server: ApiServerStatus, nowMs: number): string {
  const { address, host, state, expiresAtMs, withdrawnUntilMs = 0, lastProbe } = server;
  const name = address ?? host;
  if (state === 'withdrawn' && withdrawnUntilMs > nowMs) {
    return `${name} is withdrawn until ${isoTime(withdrawnUntilMs)}`;
  }
  const why = lastProbe === undefined ? '' : `, last probe: ${lastProbe}`;
  if (state === 'withdrawn') return `${name} has not answered since its withdrawal ended${why}`;
  if (state === 'neverSeen') return `${name} has not answered yet${why}`;
  return `${name}: its lease expired ${formatAge(nowMs - (expiresAtMs ?? nowMs))} ago${why}`;
}

function aboutFindings({ inputs, health, findings }: Parts): Problem[] {
  const groups = Map.groupBy(findings, ({ loop, type }) => `${loop} ${type}`).values();
  return [...groups].flatMap((alike): Problem[] => {
    const [first] = alike;
    if (first === undefined || (health.paused && OF_PROBES.has(first.type))) return [];
    // A type without an explanation was reported by a later version.
    const severity = explain(first.type)?.severity;
    if (severity === 'information') return [];
    const level = severity === 'action required' ? 'unhealthy' : 'warning';
    const record = inputs.records[first.loop];
    const all = record === undefined ? 1 : (findingCounts(record).get(first.type) ?? 1);
    const message = all === 1 ? first.message : `${first.message} (and ${all - 1} more)`;
    return [{ level, word: first.type, message, next: first.resolution }];
  });
}

function aboutRanges({ ranges, findings }: Parts): Problem[] {
  return wholeRanges({ ranges }).flatMap(({ title, range, usedPercent, free }): Problem[] => {
    const isReported =
      free === 0 && findings.some(({ type, message }) => type === 'nothingFree' && message.includes(range));
    const level = levelOfUse(usedPercent);
    if (level === undefined || isReported) return [];
    return [{ level, word: 'almostFull', message: `${title} ${range}: ${usedPercent} % in use, ${free} free` }];
  });
}
