import { LOOPS } from '../cluster/cluster-spec.ts';
import { pauseInForce } from '../dispatch/due.ts';
import { apiServerStatuses } from './api-server-status.ts';
import { attentionFor } from './attention.ts';
import type { Attention, ClusterStatus, FindingStatus, Health, PauseStatus } from './cluster-status.ts';
import { mendingHint } from './explanations.ts';
import { type LoopsStanding, loopsStanding } from './loop-status.ts';
import { rangeStatuses } from './range-status.ts';
import type { StatusInputs } from './status-inputs.ts';

/** How a cluster is, from what the table has of it. */
export function workOutStatus(inputs: StatusInputs, nowMs: number): ClusterStatus {
  const { spec, generation, owner } = inputs.cluster;
  const standing = loopsStanding(inputs, nowMs);
  const apiServers = apiServerStatuses(spec.apiServers, inputs.leases, nowMs);
  const { ranges, unreadable: unreadableRanges } = rangeStatuses(inputs, nowMs);
  const findings = findingsOf(inputs);
  const unreadable = [...inputs.unreadable, ...unreadableRanges];
  const attention = attentionFor({ inputs, standing, apiServers, ranges, findings, unreadable, nowMs });
  const paused = pauseOf(inputs, nowMs);
  return {
    name: spec.name,
    mode: spec.mode,
    allocator: spec.allocator,
    generation,
    ...(owner && { owner: { stack: owner.stack, packaged: owner.packaged !== undefined } }),
    ...(paused && { paused }),
    health: healthOf(attention, standing),
    attention,
    apiServers,
    loops: standing.loops,
    ranges,
    findings,
    unreadable: unreadable.map(({ message }) => message),
  };
}

/** The hold on all clusters before its own: ending the latter would not let it go on. */
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
        mend: mendingHint(finding, cluster.spec),
      }),
    );
  });
}

function healthOf(attention: readonly Attention[], { loops, paused }: LoopsStanding): Health {
  if (attention.some(({ level }) => level === 'bad')) return 'bad';
  if (attention.length > 0) return 'warning';
  if (paused) return 'paused';
  return loops.some(({ state }) => state === 'neverRan') ? 'unknown' : 'good';
}
