import type { Loop } from '../../lib/cluster/cluster-spec.ts';
import type { Finding } from '../../lib/cluster/finding.ts';
import { CRITICAL_FINDINGS, findingHint } from '../../lib/status/explanations.ts';
import { TableError } from '../../lib/table/errors.ts';
import { describeError, errorSentence } from '../../lib/telemetry/describe-error.ts';
import { EXIT, type ExitCode, exitCodeOf, worst } from '../errors.ts';
import type { Output, Plain } from '../output.ts';
import type { Style } from '../terminal.ts';

/** What one pass that wrote nothing found. */
export interface ObservingPass {
  readonly loop: Loop;
  readonly findings: readonly Finding[];
  /** Each write that it would have made, once. */
  readonly wouldWrite: readonly string[];
  readonly errors: readonly unknown[];
  /** An earlier loop did not reach the API server, so this one was not run. */
  readonly skipped: boolean;
}

/** With these the next loop would fail too. */
const UNREACHABLE: ReadonlySet<string> = new Set([
  'BadKubeconfig',
  'DeadlineExceeded',
  'TlsFailure',
  'Unauthorized',
  'Unavailable',
]);

export function isUnreachable(error: unknown): boolean {
  if (error instanceof TableError) return false;
  return error instanceof Error && 'code' in error && UNREACHABLE.has(String(error.code));
}

/** Returns what the observing passes of one cluster found, line by line. */
export function observedLines(name: string, passes: readonly ObservingPass[], paint: Output['paint']): string[] {
  const width = Math.max(...passes.map(({ loop }) => loop.length));
  return [
    `${name}: one observing pass of each loop, nothing was written`,
    ...passes.flatMap((pass) =>
      sentencesOf(name, pass).map(
        ({ text, style }) => `  ${pass.loop.padEnd(width)}  ${style === undefined ? text : paint(style, text)}`,
      ),
    ),
  ];
}

export function plainObservingPass({ loop, findings, wouldWrite, errors, skipped }: ObservingPass): Plain {
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

/** Returns the exit code for these passes alone. */
export function exitCodeOfPasses(passes: readonly ObservingPass[]): ExitCode {
  return worst(passes.flatMap(({ errors }) => errors.map((error) => exitCodeOf(error) ?? EXIT.findings)));
}

interface Sentence {
  readonly text: string;
  readonly style?: Style;
}

function sentencesOf(name: string, { findings, wouldWrite, errors, skipped }: ObservingPass): Sentence[] {
  if (skipped) return [{ text: 'not run: the API server was not reached', style: 'dim' }];
  const failures = errors.map(errorSentence);
  // An unreachable API server fails every call in the same way.
  const shown = errors.some(isUnreachable) ? failures.slice(0, 1) : failures;
  const others = findings.filter(({ message }) => !failures.some((failure) => failure.endsWith(message)));
  const sentences: Sentence[] = [
    ...wouldWrite.map((text): Sentence => ({ text: `would ${text}`, style: 'cyan' })),
    ...others.flatMap((finding): Sentence[] => [
      { text: `found ${finding.type}: ${finding.message}`, style: 'yellow' },
      ...(CRITICAL_FINDINGS.has(finding.type) ? [{ text: `  resolution: ${findingHint(finding, { name })}` }] : []),
    ]),
    ...shown.map((failure): Sentence => ({ text: `failed: ${failure}`, style: 'red' })),
  ];
  return sentences.length > 0 ? sentences : [{ text: 'nothing to do', style: 'dim' }];
}
