import { type Document, isScalar, type ParsedNode, parseAllDocuments, parseDocument } from 'yaml';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import { LONGEST_SPEC_TEXT } from '../../lib/util/bounds.ts';
import { API_VERSION } from './names.ts';
import { fault, type SpecFault } from './spec-fault.ts';
import { type SpecResult, validateClusterSpec } from './validate-cluster-spec.ts';
import { writtenSpec } from './written-spec.ts';

const YAML_OPTIONS = { stringKeys: true, logLevel: 'error' } as const;

/** Parses a cluster spec. Text that is not YAML, or has unknown tags, two documents or duplicate keys, is a fault. */
export function parseClusterSpec(yamlText: string): SpecResult {
  return tooLong(yamlText.length) ?? specIn(() => parseDocument(yamlText, YAML_OPTIONS));
}

/** Returns a result for each YAML document, and for each cluster that `kbctl cluster get -o yaml` or `-o json` printed. */
export function parseClusterSpecs(yamlText: string): SpecResult[] {
  const documents: Document.Parsed[] = parseAllDocuments(yamlText, YAML_OPTIONS);
  const filled = documents.filter(({ contents, errors }) => errors.length > 0 || !isEmpty(contents));
  if (filled.length === 0) return [parseClusterSpec('')];
  return filled.flatMap((document) => {
    const [start, , end] = document.range;
    return printedSpecs(document) ?? tooLong(end - start) ?? specIn(() => document);
  });
}

function isEmpty(contents: ParsedNode | null): boolean {
  return contents === null || (isScalar(contents) && contents.value === null);
}

function tooLong(length: number): SpecResult | undefined {
  if (length <= LONGEST_SPEC_TEXT) return undefined;
  const message = `has ${length} characters, and at most ${LONGEST_SPEC_TEXT} are read`;
  return { faults: [fault([], message, 'write one cluster in each file')] };
}

function specIn(parse: () => Document.Parsed): SpecResult {
  try {
    const document = parse();
    const problems = [...document.errors, ...document.warnings];
    if (problems.length === 0) return validateClusterSpec(document.toJS());
    return { faults: firstOfEachPlace(problems).map((problem) => notYaml(messageOf(problem))) };
  } catch (error) {
    // The YAML has aliases without an anchor, aliases that multiply, or nesting that exceeds the stack.
    return { faults: [notYaml(error instanceof Error ? error.message : String(error))] };
  }
}

function printedSpecs(document: Document.Parsed): SpecResult[] | undefined {
  try {
    const printed = document.toJS() as Printed & { readonly items: readonly Printed[] };
    if (printed.apiVersion !== API_VERSION) return undefined;
    const clusters = printed.kind === 'ClusterList' ? printed.items : [printed];
    return clusters.map(({ spec }) => validateClusterSpec(JSON.parse(JSON.stringify(writtenSpec(spec)))));
  } catch {
    return undefined;
  }
}

interface Printed {
  readonly apiVersion?: unknown;
  readonly kind?: unknown;
  readonly spec: ClusterSpec;
}

type Problem = Document['errors'][number] | Document['warnings'][number];

/** Returns the first line of the parser's message, which contains the line and column but does not quote the spec. */
function messageOf({ code, message, linePos }: Problem): string {
  const [line = ''] = message.split(':\n', 1);
  return code === 'MULTIPLE_DOCS' ? `A second document begins at line ${linePos?.[0].line}` : line;
}

/** Keeps the first fault of each place, and the first ten places, because the other faults follow from these. */
function firstOfEachPlace(problems: readonly Problem[]): readonly Problem[] {
  return [...Map.groupBy(problems, ({ pos: [start] }) => start).values()].flatMap(([first = []]) => first).slice(0, 10);
}

function notYaml(message: string): SpecFault {
  const fix = 'mind the indentation, and use no tabs, tags or second document';
  return fault([], `is not the YAML of a cluster spec: ${message}`, fix);
}
