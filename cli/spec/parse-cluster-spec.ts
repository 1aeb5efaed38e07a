import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
import { LONGEST_SPEC_TEXT } from '../../lib/cluster/bounds.ts';
import { fault, type SpecFault, type SpecPath } from './spec-fault.ts';
import { type SpecResult, validateClusterSpec } from './validate-cluster-spec.ts';

/**
 * Parses a cluster spec from YAML: {@link validateClusterSpec}, with the line and column of each fault, in the order of
 * the file. Text that is not YAML, or has more than plain values (tags, two documents, duplicate keys), is a fault too.
 */
export function parseClusterSpec(yamlText: string): SpecResult {
  if (yamlText.length > LONGEST_SPEC_TEXT) {
    const message = `has ${yamlText.length} characters, and at most ${LONGEST_SPEC_TEXT} are read`;
    return { faults: [fault([], message, 'write one cluster in each file')] };
  }
  const lines = new LineCounter();
  const read = readYaml(yamlText, lines);
  if ('faults' in read) return read;

  const result = validateClusterSpec(read.value);
  if (!('faults' in result)) return result;
  const faults = result.faults.map((found) => ({ ...found, position: positionOf(found.at, read.document, lines) }));
  return { faults: faults.sort((one, other) => inFileOrder(one.position, other.position)) };
}

type YamlResult = { readonly value: unknown; readonly document: Document } | { readonly faults: readonly SpecFault[] };

function readYaml(text: string, lines: LineCounter): YamlResult {
  try {
    const document = parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      stringKeys: true,
      logLevel: 'error',
    });
    const problems = [...document.errors, ...document.warnings];
    if (problems.length === 0) return { document, value: document.toJS() };
    return {
      faults: firstOfEachPlace(problems).map((problem) => notYaml(messageOf(problem), place(problem.pos[0], lines))),
    };
  } catch (error) {
    // Aliases without an anchor or that multiply, and nesting beyond the stack.
    return { faults: [notYaml(error instanceof Error ? error.message : String(error))] };
  }
}

type Problem = Document['errors'][number] | Document['warnings'][number];

/** Returns the parser's message; the one exception is for programmers. */
function messageOf({ code, message }: Problem): string {
  return code === 'MULTIPLE_DOCS' ? 'A second document begins here' : message;
}

/** Keeps the first fault of each place: the others follow from it. */
function firstOfEachPlace(problems: readonly Problem[]): readonly Problem[] {
  const seen = new Set<number>();
  return problems.filter(({ pos: [start] }) => !seen.has(start) && seen.add(start));
}

function notYaml(message: string, position?: Position): SpecFault {
  const fix = 'mind the indentation, and use no tabs, tags or second document';
  const found = fault([], `is not the YAML of a cluster spec: ${message}`, fix);
  return { ...found, ...(position && { position }) };
}

type Position = NonNullable<SpecFault['position']>;

function inFileOrder(one: Position, other: Position): number {
  return one.line - other.line || one.column - other.column;
}

/** Returns where the key of a field is, or that of the nearest one around it that the file has. */
function positionOf(at: SpecPath, document: Document, lines: LineCounter): Position {
  for (let length = at.length; length > 0; length--) {
    const offset = offsetOf(document, at.slice(0, length));
    if (offset !== undefined) return place(offset, lines);
  }
  return place(0, lines);
}

function offsetOf(document: Document, at: SpecPath): number | undefined {
  const around = at.length === 1 ? document.contents : document.getIn(at.slice(0, -1), true);
  const step = at.at(-1);
  if (isMap(around)) {
    const key = around.items.find((pair) => isScalar(pair.key) && pair.key.value === step)?.key;
    return isNode(key) ? key.range?.[0] : undefined;
  }
  const node = document.getIn(at, true);
  return isNode(node) ? node.range?.[0] : undefined;
}

function place(offset: number, lines: LineCounter): Position {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(line, 1), column: Math.max(col, 1) };
}
