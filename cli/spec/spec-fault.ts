/** A place in a cluster spec: field names and list indexes. Empty: the whole spec. */
export type SpecPath = readonly (string | number)[];

export interface SpecFault {
  readonly at: SpecPath;
  /** `at` as users write it: `apiServers[1].address`; empty for the whole spec. */
  readonly path: string;
  /** The fault; upstream's message if it checks the same. */
  readonly message: string;
  readonly fix?: string;
  /** The position in the file, from 1, if there is a file. */
  readonly position?: { readonly line: number; readonly column: number };
}

export function fault(at: SpecPath, message: string, fix?: string): SpecFault {
  return { at, path: pathText(at), message, ...(fix !== undefined && { fix }) };
}

function pathText(at: SpecPath): string {
  return at.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    if (!/^[\w-]+$/.test(step)) return `${text}[${JSON.stringify(step)}]`;
    return text === '' ? step : `${text}.${step}`;
  }, '');
}

/**
 * Returns all faults as text, each with its position, its path and a valid value:
 *
 * cluster.yml: 2 faults
 * 3:7 mode: is required
 * write one of observe, enforce
 */
export function describeFaults(fileName: string, faults: readonly SpecFault[]): string {
  const places = faults.map(({ position }) => (position ? `${position.line}:${position.column}` : '-'));
  const width = Math.max(0, ...places.map((place) => place.length));
  const lines = faults.flatMap(({ path, message, fix }, index) => [
    `  ${places[index]?.padEnd(width)}  ${path === '' ? '' : `${path}: `}${message}`,
    ...(fix === undefined ? [] : [`  ${' '.repeat(width)}  ${fix}`]),
  ]);
  return [`${fileName}: ${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}`, ...lines].join('\n');
}
