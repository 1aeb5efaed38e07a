import { formatAge } from './age.ts';
import type { ApiServerStatus, Attention, FindingStatus, LoopStatus, RangeStatus } from './cluster-status.ts';
import { explain, stateHint } from './explanations.ts';
import type { LoopsStanding } from './loop-status.ts';
import type { StatusInputs, UnreadableItem } from './status-inputs.ts';

/** What is known of a cluster, from which it follows what needs somebody. */
export interface Known {
  readonly inputs: StatusInputs;
  readonly standing: LoopsStanding;
  readonly apiServers: readonly ApiServerStatus[];
  readonly ranges: readonly RangeStatus[];
  readonly findings: readonly FindingStatus[];
  readonly unreadable: readonly UnreadableItem[];
  readonly nowMs: number;
}

/** As the alarms range-filling and range-nearly-full have it: more than this. */
const FILLING_PERCENT = 80;
const NEARLY_FULL_PERCENT = 95;

/** What probes said before a pause is no news in it. */
const OF_PROBES: ReadonlySet<string> = new Set(['noLiveLease', 'oddProbe']);

/** The worst first. */
export function attentionFor(known: Known): Attention[] {
  const all = [
    ...aboutLoops(known),
    ...aboutUnreadable(known),
    ...aboutLeases(known),
    ...aboutFindings(known),
    ...aboutRanges(known),
  ];
  return [...all.filter(({ level }) => level === 'bad'), ...all.filter(({ level }) => level === 'warning')];
}

function aboutLoops({ inputs, standing: { loops, overdue }, nowMs }: Known): Attention[] {
  return loops.flatMap((status): Attention[] => {
    const { loop, state } = status;
    const isOverdue = overdue.includes(loop);
    const message = `${loop} ${loopTrouble(status, nowMs)}`;
    const said = { word: state, message: oneLine(message), next: stateHint(state, inputs.cluster.spec) };
    if (state === 'failing') return [{ level: isOverdue ? 'bad' : 'warning', ...said }];
    return state === 'late' || (state === 'neverRan' && isOverdue) ? [{ level: 'bad', ...said }] : [];
  });
}

function loopTrouble({ state, lastPass, intervalSeconds, failuresInARow }: LoopStatus, nowMs: number): string {
  const due = `it is due every ${formatAge(intervalSeconds * 1000)}`;
  if (state !== 'failing') {
    return lastPass === undefined
      ? `has never run; ${due}`
      : `ran ${formatAge(nowMs - lastPass.startedAtMs)} ago; ${due}`;
  }
  const times = failuresInARow > 1 ? ` ${failuresInARow} times in a row` : '';
  return `failed${times}: ${lastPass?.error?.code}: ${lastPass?.error?.message}`;
}

function aboutUnreadable({ inputs, unreadable }: Known): Attention[] {
  const next = stateHint('unreadable', inputs.cluster.spec);
  return unreadable.map(({ message }) => ({ level: 'bad', word: 'unreadable', message: oneLine(message), next }));
}

/** Nobody is live, or some of the spec are not. Where no pass looked of late, leases say nothing. */
function aboutLeases(known: Known): Attention[] {
  const { inputs, standing, apiServers, findings, nowMs } = known;
  const { spec } = inputs.cluster;
  const loop = standing.loops.find((status) => status.loop === 'kubernetes-service');
  if (spec.endpoints.reconciler === 'none' || findings.some(({ type }) => type === 'noLiveLease')) return [];
  if (standing.withoutLiveLease) {
    const why = apiServers.map((server) => `; ${notLive(server, nowMs)}`).join('');
    const message = oneLine(`no API server has a valid lease; the endpoints stay unchanged${why}`);
    return [{ level: 'bad', word: 'noLiveLease', message, next: noLiveLeaseHint(known) }];
  }
  if (loop?.state !== 'good' && loop?.state !== 'failing') return [];
  return apiServers.flatMap((server): Attention[] => {
    const { state, kind } = server;
    if (kind === undefined || (state !== 'ranOut' && state !== 'neverSeen')) return [];
    const message = oneLine(`API server ${notLive(server, nowMs)}`);
    return [{ level: 'warning', word: state, message, next: stateHint(state, spec) }];
  });
}

/** Its address, and what keeps it out. */
function notLive(server: ApiServerStatus, nowMs: number): string {
  const { address, host, state, expiresAtMs, withdrawnUntilMs = 0, lastProbe } = server;
  const name = address ?? host;
  if (state === 'withdrawn' && withdrawnUntilMs > nowMs) {
    return `${name} is withdrawn until ${new Date(withdrawnUntilMs).toISOString()}`;
  }
  const why = lastProbe === undefined ? '' : `, last probe: ${lastProbe}`;
  if (state === 'withdrawn') return `${name} has not answered since its withdrawal ended${why}`;
  if (state === 'neverSeen') return `${name} has not answered yet${why}`;
  return `${name}: its lease expired ${formatAge(nowMs - (expiresAtMs ?? nowMs))} ago${why}`;
}

/** Where everybody is withdrawn, nothing has to be reached: the withdrawals are to end. */
function noLiveLeaseHint({ inputs, apiServers, nowMs }: Known): string {
  const withdrawn = apiServers.filter(
    ({ state, withdrawnUntilMs = 0 }) => state === 'withdrawn' && withdrawnUntilMs > nowMs,
  );
  const [first] = withdrawn;
  const { spec } = inputs.cluster;
  if (first?.address === undefined || withdrawn.length < apiServers.length) return stateHint('noLiveLease', spec);
  return `kbctl deregister ${spec.name} ${first.address} --undo ends a withdrawal; the endpoints stay unchanged`;
}

/** One for each type that a loop found. */
function aboutFindings(known: Known): Attention[] {
  const { standing, findings } = known;
  const groups = Map.groupBy(findings, ({ loop, type }) => `${loop} ${type}`).values();
  return [...groups].flatMap((alike): Attention[] => {
    const [first] = alike;
    if (first === undefined || (standing.paused && OF_PROBES.has(first.type))) return [];
    const level = levelOf(first.type);
    const others = alike.length === 1 ? '' : ` (and ${alike.length - 1} more)`;
    const message = oneLine(`${first.message}${others}`);
    const next = first.type === 'noLiveLease' ? noLiveLeaseHint(known) : first.mend;
    return level === undefined ? [] : [{ level, word: first.type, message, next }];
  });
}

function levelOf(type: string): Attention['level'] | undefined {
  const known = explain(type);
  // A later version found it, and knows why.
  if (!('severity' in known)) return 'warning';
  if (known.severity === 'information') return undefined;
  return known.severity === 'action required' ? 'bad' : 'warning';
}

function aboutRanges({ inputs, ranges, findings }: Known): Attention[] {
  const next = stateHint('almostFull', inputs.cluster.spec);
  return ranges.flatMap(({ title, range, usedPercent, free }): Attention[] => {
    const isSaid =
      free === 0 && findings.some(({ type, message }) => type === 'nothingFree' && message.includes(range));
    if (usedPercent <= FILLING_PERCENT || isSaid) return [];
    const level = usedPercent > NEARLY_FULL_PERCENT ? 'bad' : 'warning';
    return [{ level, word: 'almostFull', message: `${title} ${range}: ${usedPercent} % in use, ${free} free`, next }];
  });
}

function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
}
