import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Explanation } from '../lib/status/explanation.ts';
import { EXPLANATIONS } from '../lib/status/explanations.ts';

const TASKS = path.join(import.meta.dirname, '..', 'docs', 'tasks');

const INTRODUCTION = `# Findings, states and error codes

What \`kbctl status\`, the status page, logs and events say, one word a section: what it is, its causes (the most
likely first) and its resolution. \`kbctl explain <word>\` prints the same, and takes a reason of an event too.
[Reading a finding](tasks/reading-a-finding.md) leads from a finding to its resolution.

- **action required**: it does not end by itself.
- **resolves automatically**: a later pass ends it, or what caused it does.
- **information**: nothing has to be done.

What is in angle brackets is yours to fill in.
`;

const KINDS = [
  {
    kind: 'finding',
    title: 'Findings',
    about:
      'What a pass saw wrong. They are in the log, the run record and the metrics; some are events on the Service.',
  },
  { kind: 'state', title: 'States', about: 'What a cluster, a loop, a range or an API server is like.' },
  {
    kind: 'error code',
    title: 'Error codes',
    about:
      'Why a pass failed, or a request to allocate was refused. `Full`, `Unknown`, `CorruptSnapshot` and `NoLiveLease` end a pass too: they are explained as findings.',
  },
] as const;

/** `docs/findings.md`: every explanation, for readers. */
export function findingsPage(): string {
  return `${[INTRODUCTION, ...KINDS.flatMap(part)].join('\n')}`;
}

function part({ kind, title, about }: (typeof KINDS)[number]): string[] {
  const all = EXPLANATIONS.filter((one) => one.kind === kind);
  const rows = all.map((one) => `| [${one.word}](#${anchorOf(one)}) | ${one.title} | ${one.severity} |`);
  const table = ['| word | what it is | |', '| --- | --- | --- |', ...rows].join('\n');
  return [`## ${title}\n\n${about}\n\n${table}\n`, ...all.map(section)];
}

function section(one: Explanation): string {
  const { title, what, causes, mending, severity, reasons, alarm, task } = one;
  const reported = reasons.length === 0 ? [] : [`Events: ${reasons.map((reason) => `\`${reason}\``).join(', ')}.`];
  const rings = alarm === undefined ? [] : [`Alarm: [${alarm}](runbook.md#${alarm}).`];
  const leads = task === undefined ? [] : [`By task: [${taskTitle(task)}](tasks/${task}.md).`];
  const steps = mending.map(({ text, commands }, index) =>
    [`${index + 1}. ${text}`, ...(commands.length === 0 ? [] : [fenced(commands)])].join('\n\n'),
  );
  return [
    `### ${headingOf(one)}`,
    `**${title}** (${severity}). ${what}`,
    ...[[...reported, ...rings, ...leads].join(' ')].filter((line) => line !== ''),
    `Causes:`,
    causes.map((cause) => `- ${cause}`).join('\n'),
    'Resolution:',
    `${steps.join('\n\n')}\n`,
  ].join('\n\n');
}

function taskTitle(task: string): string {
  const [heading = ''] = readFileSync(path.join(TASKS, `${task}.md`), 'utf8').split('\n');
  return heading.replace(/^# /, '');
}

function fenced(commands: readonly string[]): string {
  return ['```text', ...commands, '```'].map((line) => `   ${line}`).join('\n');
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
