import { defined } from '../../lib/util/values.ts';

/** The place in a spec, as field names and list indexes. The path of the whole spec is empty. */
export type SpecPath = readonly (string | number)[];

export interface SpecFault {
  /** The place as users write it: `apiServers[1].address`; empty for the whole spec. */
  readonly path: string;
  /** The message about the fault: upstream's message, if upstream makes the same check. */
  readonly message: string;
  readonly fix?: string;
}

export type Report = (at: SpecPath, message: string, fix?: string) => void;

export function fault(at: SpecPath, message: string, fix?: string): SpecFault {
  return { path: pathText(at), message, ...defined({ fix }) };
}

export function pathText(at: SpecPath): string {
  return at.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    if (!/^[\w-]+$/.test(step)) return `${text}[${JSON.stringify(step)}]`;
    return text === '' ? step : `${text}.${step}`;
  }, '');
}

/** Returns a heading and a line for each fault. A second line shows the fix, such as a valid value. */
export function describeFaults(fileName: string, faults: readonly SpecFault[]): string {
  const lines = faults.flatMap(({ path, message, fix }) => [
    `  ${path === '' ? '' : `${path}: `}${message}`,
    ...(fix === undefined ? [] : [`    ${fix}`]),
  ]);
  return [`${fileName}: ${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}`, ...lines].join('\n');
}
