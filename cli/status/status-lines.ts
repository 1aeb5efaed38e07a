import { formatAge } from '../../lib/util/age.ts';
import { isoTime } from '../../lib/util/values.ts';
import type { Output } from '../output.ts';
import { TONES, wrapped } from '../text-table.ts';
import type { ClusterStatus, LoopStatus } from './cluster-status.ts';
import { ago, apiServerColumns, findingColumns, loopColumns, RANGE_COLUMNS } from './columns.ts';

const MOST_FINDINGS = 20;
const MOST_WRITES = 10;

/** Returns a command that lists all findings of the first loop that has more findings than the table keeps (20). */
export function allFindingsCommand({ name, loops, findings }: ClusterStatus): string {
  const kept = (loop: LoopStatus['loop']) => findings.filter((finding) => finding.loop === loop).length;
  const cut = loops.find(({ loop, lastPass }) => (lastPass?.findings ?? 0) > kept(loop));
  return `kbctl run-once ${cut?.loop} ${name} --dry-run`;
}

export function statusLines(status: ClusterStatus, nowMs: number, output: Output): string[] {
  const { name, apiServers, loops, ranges, findings, findingTotal } = status;
  const section = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : ['', output.paint('bold', title), ...lines];
  const listed = (lines: readonly string[]) => [
    ...lines.slice(0, MOST_WRITES).flatMap((line) => wrapped(line, output.textWidth, '- ')),
    ...moreLine(lines.length - MOST_WRITES, `kbctl status ${name} -o yaml`),
  ];
  const rangeLines = ranges.length === 0 ? ['none was saved yet'] : output.table(RANGE_COLUMNS, ranges);
  const shown = findings.slice(0, MOST_FINDINGS);
  const columns = findingColumns(nowMs).filter(({ title }) => ['FINDING', 'SERVICE', 'MESSAGE'].includes(title));
  const count = shown.length < findingTotal ? `${shown.length} of ${findingTotal}` : findingTotal;
  const findingLines = [
    ...output.table(columns, shown),
    ...moreLine(findings.length - MOST_FINDINGS, `kbctl get findings ${name}`),
    ...moreLine(findingTotal - findings.length, allFindingsCommand(status)),
  ];
  return [
    `${output.paint('bold', name)}  ${output.paint(TONES[status.health], status.health)}  ${headline(status)}`,
    ...pauseLines(status, nowMs),
    ...section('Needs attention', attentionLines(status, output)),
    ...section('API servers', output.table(apiServerColumns(nowMs), apiServers)),
    ...section('Loops', output.table(loopColumns(nowMs), loops)),
    ...section('Would write', listed(withheldLines(loops))),
    ...section('Last changes', listed(changeLines(loops, nowMs))),
    ...section('Ranges', rangeLines),
    ...section(`Findings of the last passes (${count})`, findings.length === 0 ? [] : findingLines),
  ];
}

function moreLine(more: number, command: string): string[] {
  return more > 0 ? [`... and ${more} more: ${command}`] : [];
}

export function headline({ mode, allocator, generation, owner }: ClusterStatus): string {
  const whose = owner && `, owned by stack ${owner.stack}`;
  return `${mode}, allocator ${allocator}, generation ${generation}${whose ?? ''}`;
}

export function pauseLines({ paused }: Pick<ClusterStatus, 'paused'>, nowMs: number): string[] {
  if (paused === undefined) return [];
  const all = paused.all ? 'all clusters are ' : '';
  const until = `${isoTime(paused.untilMs)} (${formatAge(paused.untilMs - nowMs)} from now)`;
  return [`${all}paused until ${until} by ${paused.by}: ${paused.reason}`];
}

function attentionLines({ attention }: ClusterStatus, output: Output): string[] {
  return attention.flatMap(({ level, word, message, next }) => [
    ...wrapped(`${word}: ${message}`, output.textWidth, level === 'unhealthy' ? '✗ ' : '! ').map((line) =>
      output.paint(TONES[level], line),
    ),
    ...wrapped(next, output.textWidth, '  → '),
  ]);
}

export function withheldLines(loops: readonly LoopStatus[]): string[] {
  return loops.flatMap(({ loop, wouldWrite = [] }) => wouldWrite.map((text) => `${loop}: would ${text}`));
}

export function changeLines(loops: readonly LoopStatus[], nowMs: number): string[] {
  const latestFirst = loops.toSorted((one, other) => (other.lastChange?.atMs ?? 0) - (one.lastChange?.atMs ?? 0));
  return latestFirst.flatMap(({ loop, lastChange }) =>
    (lastChange?.changes ?? []).map((text) => `${loop}, ${ago(lastChange?.atMs, nowMs)}: ${text}`),
  );
}
