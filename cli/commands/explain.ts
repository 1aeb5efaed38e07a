import { Command } from 'commander';
import { boundedText } from '../../lib/util/values.ts';
import type { Act, Cli } from '../cli.ts';
import { EXIT, usageError } from '../errors.ts';
import { ALARM_GUIDES, type AlarmGuide } from '../explain/explain-alarms.ts';
import type { Explanation } from '../explain/explanation.ts';
import { EXPLANATIONS, explain, nearestWord } from '../explain/explanations.ts';
import type { Output } from '../output.ts';
import { wrapped } from '../text-table.ts';

export function explainCommand(act: Act): Command {
  return new Command('explain')
    .description('Explain a finding, a state, an error code or an alarm: what it is, its causes and its resolution')
    .argument(
      '[word...]',
      'a word of status, or the message of an event, a log line or an error; default: list all words',
    )
    .action(act(async (cli, words) => (words.length === 0 ? list(cli) : explainOne(cli, words.join(' ')))));
}

function list({ output }: Cli) {
  const alarms = Object.entries(ALARM_GUIDES).map(([word, guide]) => {
    return { word, kind: 'alarm', severity: guide.severity, title: guide.impact, plain: { alarm: word, ...guide } };
  });
  output.list({
    kind: 'Explanation',
    items: [...EXPLANATIONS.map((one) => ({ ...one, plain: plainExplanation(one) })), ...alarms],
    columns: [
      { title: 'WORD', text: ({ word }) => word },
      { title: 'KIND', text: ({ kind }) => kind },
      { title: 'SEVERITY', text: ({ severity }) => severity, yields: true },
      { title: 'WHAT', text: ({ title }) => title, shrinks: true },
    ],
    plain: ({ plain }) => plain,
    none: '',
  });
  return EXIT.fine;
}

/** Returns the alarm that a CloudWatch name contains. Such a name also contains the stack, and perhaps a loop or function. */
function alarmIn(word: string): string | undefined {
  return Object.keys(ALARM_GUIDES).findLast((alarm) => `-${word}-`.includes(`-${alarm}-`));
}

function explainOne({ output }: Cli, word: string) {
  const alarm = alarmIn(word);
  const guide = alarm === undefined ? undefined : ALARM_GUIDES[alarm];
  if (alarm !== undefined && guide !== undefined) return explainAlarm(output, alarm, guide);
  const found = explain(word);
  if (found === undefined) {
    const nearest = nearestWord(word);
    const next = nearest === undefined ? '"kbctl explain" lists all words' : `did you mean ${nearest}?`;
    throw usageError(`"${boundedText(word, 80)}" is not a known word; ${next}`);
  }
  output.object({ kind: 'Explanation', ...plainExplanation(found) }, () => linesOf(found, output));
  return EXIT.fine;
}

function explainAlarm(output: Output, alarm: string, guide: AlarmGuide) {
  const { severity, impact, stack, run } = guide;
  output.object({ kind: 'Alarm', alarm, ...guide }, () => [
    `${output.paint('bold', alarm)} (alarm, ${severity})`,
    ...wrapped(impact, output.textWidth, 'Impact: '),
    `First command: ${output.paint('cyan', stack)}`,
    ...(run === stack || run === '' ? [] : [`With kbctl run: ${output.paint('cyan', run)}`]),
    `Then see docs/runbook.md#${alarm}`,
  ]);
  return EXIT.fine;
}

function linesOf(
  { word, kind, title, what, causes, resolution, severity, reasons }: Explanation,
  { textWidth: width, paint }: Output,
): string[] {
  const heading = (text: string) => ['', paint('bold', text)];
  return [
    `${paint('bold', word)} (${kind}, ${severity}): ${title}`,
    ...(reasons.length > 0 ? [`Events: ${reasons.join(', ')}`] : []),
    '',
    ...wrapped(what, width),
    ...(causes.length === 0 ? [] : heading('Causes')),
    ...causes.flatMap((cause) => wrapped(cause, width, '- ')),
    ...heading('Resolution'),
    ...resolution.flatMap(({ text, commands }, index) => [
      ...wrapped(text, width, `${index + 1}. `),
      ...commands.map((command) => `     ${paint('cyan', command)}`),
    ]),
  ];
}

function plainExplanation({ kind, resolution, ...explanation }: Explanation) {
  return { ...explanation, wordKind: kind, mending: resolution };
}
