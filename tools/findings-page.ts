import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Explanation, Severity } from '../cli/explain/explanation.ts';
import { EXPLANATIONS } from '../cli/explain/explanations.ts';

const TASKS = path.join(import.meta.dirname, '..', 'docs', 'tasks');

const INTRODUCTION = `# Findings, states and error codes

\`kbctl explain <word>\` prints the causes of each and the commands that resolve it (\`-o json\` also the alarm), without a table. See also
[Reading a finding](tasks/reading-a-finding.md).
`;

const ERROR_CODES = `## Error codes

\`kbctl explain\` lists them. Refused requests have [codes of their own](allocate-reference.md#refusals).
`;

const SEVERITIES: readonly Severity[] = ['action required', 'resolves automatically', 'information'];

/** Returns `docs/findings.md`: the findings and states, with their events and tasks. */
export function findingsPage(): string {
  return [
    INTRODUCTION,
    '## Findings\n\nResults of a pass.\n',
    ...tables('finding'),
    '## States\n\nOf clusters, loops, ranges and API servers.\n',
    ...tables('state'),
    ERROR_CODES,
  ].join('\n');
}

const HEADINGS = { finding: 'Findings', state: 'States' } as const;

function tables(kind: keyof typeof HEADINGS): string[] {
  return SEVERITIES.flatMap((severity) => {
    const all = EXPLANATIONS.filter((one) => one.kind === kind && one.severity === severity);
    if (all.length === 0) return [];
    const rows = all.map((one) => `| \`${one.word}\` | ${[`${one.title}.`, ...facts(one)].join(' ')} |`);
    const heading = `### ${HEADINGS[kind]}: ${severity}\n`;
    return [[heading, `| ${kind} | meaning |`, '| --- | --- |', ...rows, ''].join('\n')];
  });
}

function facts({ reasons, task }: Explanation): string[] {
  return [
    ...(reasons.length === 0 ? [] : [`Events: ${reasons.map((reason) => `\`${reason}\``).join(', ')}.`]),
    ...(task === undefined ? [] : [`Task: [${taskTitle(task)}](tasks/${task}.md).`]),
  ];
}

function taskTitle(task: string): string {
  const [heading = ''] = readFileSync(path.join(TASKS, `${task}.md`), 'utf8').split('\n');
  return heading.replace(/^# /, '');
}
