import { CRITICAL_FINDINGS, findingHint } from '../../lib/status/explanations.ts';
import { describeError, errorSentence } from '../../lib/telemetry/describe-error.ts';
import { EXIT, type ExitCode, exitCodeOf, worst } from '../errors.ts';
import type { Output, Plain } from '../output.ts';
import type { Style } from '../terminal.ts';
import { isNoWayIn, type Observed } from './observed.ts';

/** What the observing passes of one cluster saw, for a person. */
export function observedLines(name: string, observed: readonly Observed[], paint: Output['paint']): string[] {
  const width = Math.max(...observed.map(({ loop }) => loop.length));
  return [
    `${name}: one observing pass of each loop, which wrote nothing`,
    ...observed.flatMap((one) =>
      sentencesOf(name, one).map(({ text, style }) => {
        const shown = text;
        return `  ${one.loop.padEnd(width)}  ${style === undefined ? shown : paint(style, shown)}`;
      }),
    ),
  ];
}

export function plainObserved({ loop, findings, wouldWrite, errors, skipped }: Observed): Plain {
  return {
    loop,
    outcome: skipped ? 'notRun' : errors.length > 0 ? 'failed' : 'succeeded',
    wouldWrite,
    findings: findings.map(({ type, message, item, service }) => ({
      type,
      message,
      item,
      service,
      needsPerson: CRITICAL_FINDINGS.has(type),
    })),
    errors: errors.map((error) => ({ ...describeError(error) })),
  };
}

/** What these passes alone would end a command with. */
export function exitCodeOfObserved(observed: readonly Observed[]): ExitCode {
  return worst(observed.flatMap(({ errors }) => errors.map((error) => exitCodeOf(error) ?? EXIT.findings)));
}

interface Sentence {
  readonly text: string;
  readonly style?: Style;
}

function sentencesOf(name: string, { findings, wouldWrite, errors, skipped }: Observed): Sentence[] {
  if (skipped) return [{ text: 'not run: there is no way to the API server', style: 'dim' }];
  const failures = errors.map(errorSentence);
  // What there is no way to fails in the same way whatever it is asked for.
  const told = errors.some(isNoWayIn) ? failures.slice(0, 1) : failures;
  // What a pass found and failed by is told once.
  const others = findings.filter(({ message }) => !failures.some((failure) => failure.endsWith(message)));
  const sentences: Sentence[] = [
    ...wouldWrite.map((text): Sentence => ({ text: `would ${text}`, style: 'cyan' })),
    ...others.flatMap((finding): Sentence[] => [
      { text: `found ${finding.type}: ${finding.message}`, style: 'yellow' },
      ...(CRITICAL_FINDINGS.has(finding.type) ? [{ text: `  resolution: ${findingHint(finding, { name })}` }] : []),
    ]),
    ...told.map((failure): Sentence => ({ text: `failed: ${failure}`, style: 'red' })),
  ];
  return sentences.length > 0 ? sentences : [{ text: 'nothing to do', style: 'dim' }];
}
