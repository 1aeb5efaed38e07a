import type { DoctorAnswer } from '../lib/doctor/doctor.ts';
import type { DoctorLine } from '../lib/doctor/line.ts';
import type { Output, Plain } from './output.ts';
import type { Style } from './terminal.ts';
import { wrapped } from './wrap.ts';

const SIGNS: Readonly<Record<DoctorLine['level'], { readonly sign: string; readonly style: Style }>> = {
  ok: { sign: '✓', style: 'green' },
  warn: { sign: '!', style: 'yellow' },
  fail: { sign: '✗', style: 'red' },
};

/** What concerns them all, then each cluster under its name; with each that is not well, what to do. */
export function doctorLines(
  { lines }: DoctorAnswer,
  { columns = 120, paint }: Pick<Output, 'columns' | 'paint'>,
): string[] {
  const common = lines.filter(({ cluster }) => cluster === undefined);
  const own = Map.groupBy(
    lines.filter(({ cluster }) => cluster !== undefined),
    ({ cluster = '' }) => cluster,
  );
  const shown = (line: DoctorLine) => lineOf(line, columns, paint);
  return [
    ...common.flatMap(shown),
    ...[...own].flatMap(([cluster, looked]) => ['', paint('bold', cluster), ...looked.flatMap(shown)]),
  ];
}

export function plainDoctor({ ok, lines }: DoctorAnswer): { readonly kind: string; readonly [field: string]: Plain } {
  return { kind: 'Doctor', ok, lines: lines.map((line) => ({ ...line })) };
}

function lineOf({ check, level, message, fix }: DoctorLine, columns: number, paint: Output['paint']): string[] {
  const { sign, style } = SIGNS[level];
  const [first = '', ...others] = wrapped(`${check}: ${message}`, columns, '  ');
  const advice = fix === undefined ? [] : wrapped(fix, columns, '    → ');
  return [`${paint(style, sign)} ${first.slice(2)}`, ...others, ...advice];
}
