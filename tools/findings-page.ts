import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Explanation, Severity } from '../lib/status/explanation.ts';
import { EXPLANATIONS } from '../lib/status/explanations.ts';

const TASKS = path.join(import.meta.dirname, '..', 'docs', 'tasks');

const INTRODUCTION = `# Findings, states and error codes

Reference; \`kbctl explain <word>\` prints the same, and the resolution of an error code. To start from a finding, see
[Reading a finding](tasks/reading-a-finding.md). Replace what is in angle brackets.
`;

const SEVERITIES: readonly Severity[] = ['action required', 'resolves automatically', 'information'];

/** `docs/findings.md`: every explanation, for readers. */
export function findingsPage(): string {
  return [
    INTRODUCTION,
    ...part('Findings', 'Results of a pass.', 'finding'),
    ...part('States', 'Of clusters, loops, ranges, API servers.', 'state'),
    ...errorCodes(),
  ].join('\n');
}

function part(title: string, about: string, kind: Explanation['kind']): string[] {
  const all = EXPLANATIONS.filter((one) => one.kind === kind);
  const rows = SEVERITIES.map((severity) => {
    const links = all.filter((one) => one.severity === severity).map(({ word }) => `[${word}](#${word.toLowerCase()})`);
    return `- ${severity}: ${links.join(', ')}`;
  });
  return [`## ${title}\n\n${about}\n\n${rows.join('\n')}\n`, ...all.map(section)];
}

/** Their messages have the resolution, and so does `kbctl explain`. */
function errorCodes(): string[] {
  const about = 'For `Full`, `Unknown`, `CorruptSnapshot` and `NoLiveLease`, see the findings.';
  const tables = SEVERITIES.map((severity) => {
    const codes = EXPLANATIONS.filter((one) => one.kind === 'error code' && one.severity === severity);
    const rows = codes.map(({ word, title, what }) => `| \`${word}\` | ${title}. ${what} |`);
    return [`### Codes: ${severity}\n`, '| code | meaning |', '| --- | --- |', ...rows, ''].join('\n');
  });
  return [`## Error codes\n\n${about}\n`, ...tables];
}

function section(one: Explanation): string {
  const { title, what, causes, resolution, reasons, alarm, task } = one;
  const facts = [
    ...(reasons.length === 0 ? [] : [`Events: ${reasons.map((reason) => `\`${reason}\``).join(', ')}.`]),
    ...(alarm === undefined ? [] : [`Alarm: [${alarm}](runbook.md#${alarm}).`]),
    ...(task === undefined ? [] : [`Task: [${taskTitle(task)}](tasks/${task}.md).`]),
  ];
  const steps = resolution.map(({ text, commands }) =>
    [text, ...commands.map((command) => `\`${command}\``)].join('\n  '),
  );
  return [
    `### ${one.word}`,
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
