import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Explanation, Severity } from '../cli/explain/explanation.ts';
import { EXPLANATIONS } from '../cli/explain/explanations.ts';

const TASKS = path.join(import.meta.dirname, '..', 'docs', 'tasks');

const INTRODUCTION = `# Findings, states and error codes

\`kbctl explain <word>\` prints the same, with the causes. To start from a finding, see [Reading a finding](tasks/reading-a-finding.md).
`;

const SEVERITIES: readonly Severity[] = ['action required', 'resolves automatically', 'information'];

/** `docs/findings.md`: every explanation, for readers. */
export function findingsPage(): string {
  const codes =
    '`kbctl explain` lists all, and `kbctl explain <code>` prints the causes of one and what to do. Refused requests have [codes of their own](allocate-reference.md#refusals).';
  return [
    INTRODUCTION,
    ...findings(),
    '## States\n\nOf clusters, loops, ranges and API servers.\n',
    ...tables('state'),
    `## Error codes\n\n${codes}\n`,
  ].join('\n');
}

/** A section for each finding that requires action, with its resolution unless a task has it, and tables of the others. */
function findings(): string[] {
  const urgent = EXPLANATIONS.filter((one) => one.kind === 'finding' && one.severity === 'action required');
  const links = urgent.map(({ word }) => `[${word}](#${word.toLowerCase()})`);
  const intro = `## Findings\n\nResults of a pass. These require action: ${links.join(', ')}.\n`;
  return [intro, ...urgent.map(section), ...tables('finding', SEVERITIES.slice(1))];
}

const HEADINGS = { finding: 'Findings', state: 'States' } as const;

/** One table per severity. Causes and resolutions are in `kbctl explain`. */
function tables(kind: keyof typeof HEADINGS, severities = SEVERITIES): string[] {
  return severities.flatMap((severity) => {
    const all = EXPLANATIONS.filter((one) => one.kind === kind && one.severity === severity);
    if (all.length === 0) return [];
    const rows = all.map((one) => `| \`${one.word}\` | ${[`${one.title}.`, ...links(one)].join(' ')} |`);
    const heading = `### ${HEADINGS[kind]}: ${severity}\n`;
    return [[heading, `| ${kind} | meaning |`, '| --- | --- |', ...rows, ''].join('\n')];
  });
}

/** Links to the alarm of a finding or state, and to the task that resolves it. */
function links({ alarm, task }: Explanation): string[] {
  return [
    ...(alarm === undefined ? [] : [`Alarm: [${alarm}](runbook.md#${alarm}).`]),
    ...(task === undefined ? [] : [`Task: [${taskTitle(task)}](tasks/${task}.md).`]),
  ];
}

function section(one: Explanation): string {
  const { title, what, resolution, reasons, task } = one;
  const facts = [
    ...(reasons.length === 0 ? [] : [`Events: ${reasons.map((reason) => `\`${reason}\``).join(', ')}.`]),
    ...links(one),
  ];
  const steps = resolution.map(({ text, commands }) =>
    [text, ...commands.map((command) => `\`${command}\``)].join('\n  '),
  );
  return [
    `### ${one.word}`,
    `**${title}.** ${[what, ...facts].join(' ')}`,
    ...(task === undefined ? [steps.map((text) => `- ${text}`).join('\n')] : []),
    '',
  ].join('\n\n');
}

function taskTitle(task: string): string {
  const [heading = ''] = readFileSync(path.join(TASKS, `${task}.md`), 'utf8').split('\n');
  return heading.replace(/^# /, '');
}
