import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Explanation, Severity } from '../lib/status/explanation.ts';
import { EXPLANATIONS } from '../lib/status/explanations.ts';

const TASKS = path.join(import.meta.dirname, '..', 'docs', 'tasks');

const INTRODUCTION = `# Findings, states and error codes

Reference; \`kbctl explain <word>\` prints the same. To start from a finding, see
[Reading a finding](tasks/reading-a-finding.md). Replace what is in angle brackets.
`;

const KINDS = [
  { kind: 'finding', title: 'Findings', about: 'Results of a pass.' },
  { kind: 'state', title: 'States', about: 'Of clusters, loops, ranges, API servers.' },
  {
    kind: 'error code',
    title: 'Error codes',
    about: 'For `Full`, `Unknown`, `CorruptSnapshot` and `NoLiveLease`, see the findings.',
  },
] as const;

const SEVERITIES: readonly Severity[] = ['action required', 'resolves automatically', 'information'];

/** `docs/findings.md`: every explanation, for readers. */
export function findingsPage(): string {
  return [INTRODUCTION, ...KINDS.flatMap(part)].join('\n');
}

function part({ kind, title, about }: (typeof KINDS)[number]): string[] {
  const all = EXPLANATIONS.filter((one) => one.kind === kind);
  const rows = SEVERITIES.map((severity) => {
    const links = all.filter((one) => one.severity === severity).map((one) => `[${one.word}](#${anchorOf(one)})`);
    return links.length === 0 ? [] : [`- ${severity}: ${links.join(', ')}`];
  });
  return [`## ${title}\n\n${about}\n\n${rows.flat().join('\n')}\n`, ...all.map(section)];
}

function section(one: Explanation): string {
  const { title, what, causes, resolution, reasons, alarm, task } = one;
  const facts = [
    ...(reasons.length === 0 ? [] : [`Events: ${reasons.map((reason) => `\`${reason}\``).join(', ')}.`]),
    ...(alarm === undefined ? [] : [`Alarm: [${alarm}](runbook.md#${alarm}).`]),
    ...(task === undefined ? [] : [`Task: [${taskTitle(task)}](tasks/${task}.md).`]),
  ];
  const steps = resolution.map(({ text, commands }) => [text, ...commands.map(inCode)].join('\n  '));
  return [
    `### ${headingOf(one)}`,
    `**${title}.** ${[what, ...facts].join(' ')}`,
    ...(causes.length === 0 ? [] : [listed('Causes', causes)]),
    `${listed('Resolution', steps)}\n`,
  ].join('\n\n');
}

function listed(label: string, texts: readonly string[]): string {
  return texts.length === 1 ? `${label}: ${texts[0]}` : `${label}:\n\n${texts.map((text) => `- ${text}`).join('\n')}`;
}

function taskTitle(task: string): string {
  const [heading = ''] = readFileSync(path.join(TASKS, `${task}.md`), 'utf8').split('\n');
  return heading.replace(/^# /, '');
}

function inCode(command: string): string {
  return `\`${command}\``;
}

/** A heading of its own where another word differs in case alone. */
function headingOf({ word, kind }: Explanation): string {
  return hasTwin(word) ? `${word} (${kind})` : word;
}

function anchorOf(one: Explanation): string {
  return headingOf(one).toLowerCase().replace(/[()]/g, '').replaceAll(' ', '-');
}

function hasTwin(word: string): boolean {
  return EXPLANATIONS.filter((other) => other.word.toLowerCase() === word.toLowerCase()).length > 1;
}
