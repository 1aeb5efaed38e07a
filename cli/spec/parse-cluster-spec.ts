import { type Document, parseDocument } from 'yaml';
import { LONGEST_SPEC_TEXT } from '../../lib/util/bounds.ts';
import { fault, type SpecFault } from './spec-fault.ts';
import { type SpecResult, validateClusterSpec } from './validate-cluster-spec.ts';

/** Parses a cluster spec. Text that is not YAML, or has unknown tags, two documents or duplicate keys, is a fault. */
export function parseClusterSpec(yamlText: string): SpecResult {
  if (yamlText.length > LONGEST_SPEC_TEXT) {
    const message = `has ${yamlText.length} characters, and at most ${LONGEST_SPEC_TEXT} are read`;
    return { faults: [fault([], message, 'write one cluster in each file')] };
  }
  try {
    const document = parseDocument(yamlText, { stringKeys: true, logLevel: 'error' });
    const problems = [...document.errors, ...document.warnings];
    if (problems.length > 0)
      return { faults: firstOfEachPlace(problems).map((problem) => notYaml(messageOf(problem))) };
    return validateClusterSpec(document.toJS());
  } catch (error) {
    // The YAML has aliases without an anchor, aliases that multiply, or nesting that exceeds the stack.
    return { faults: [notYaml(error instanceof Error ? error.message : String(error))] };
  }
}

type Problem = Document['errors'][number] | Document['warnings'][number];

/** Returns the first line of the parser's message, which contains the line and column but does not quote the spec. */
function messageOf({ code, message, linePos }: Problem): string {
  const [line = ''] = message.split(':\n', 1);
  return code === 'MULTIPLE_DOCS' ? `A second document begins at line ${linePos?.[0].line}` : line;
}

/** Keeps the first fault of each place, and the first ten places, because the other faults follow from these. */
function firstOfEachPlace(problems: readonly Problem[]): readonly Problem[] {
  const seen = new Set<number>();
  return problems.filter(({ pos: [start] }) => !seen.has(start) && seen.add(start)).slice(0, 10);
}

function notYaml(message: string): SpecFault {
  const fix = 'mind the indentation, and use no tabs, tags or second document';
  return fault([], `is not the YAML of a cluster spec: ${message}`, fix);
}
