import { type Document, isScalar, type ParsedNode, parseAllDocuments, parseDocument } from 'yaml';
import { type ClusterSpec, DAY_SECONDS, LEASE_INTERVALS, writtenSpecShape } from '../../lib/spec/cluster-spec.ts';
import { BOUNDS, fieldOver, LONGEST_SPEC_TEXT, MOST_HOSTS } from '../../lib/util/bounds.ts';
import { isRecord } from '../../lib/util/values.ts';
import { checkApiServers, checkKubeconfigField } from './api-server-rules.ts';
import { API_VERSION } from './names.ts';
import { checkFamilies, checkNodePortRange, checkPorts, checkServiceRanges } from './network-rules.ts';
import { fault, type Report, type SpecFault } from './spec-fault.ts';
import { checkShape, type SpecDraft } from './spec-shape.ts';
import { writtenSpec } from './written-spec.ts';

export type SpecResult = { readonly spec: ClusterSpec } | { readonly faults: readonly SpecFault[] };

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
    if (printed.apiVersion !== API_VERSION || document.errors.length > 0) return undefined;
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

/** Keeps only the first fault at each place, and only the first ten places: later faults usually follow from earlier faults. */
function firstOfEachPlace(problems: readonly Problem[]): readonly Problem[] {
  return [...Map.groupBy(problems, ({ pos: [start] }) => start).values()].flatMap(([first = []]) => first).slice(0, 10);
}

function notYaml(message: string): SpecFault {
  const fix = 'mind the indentation, and use no tabs, tags or second document';
  return fault([], `is not the YAML of a cluster spec: ${message}`, fix);
}

/** Fills in every default, or returns all faults. Never throws. */
export function validateClusterSpec(value: unknown): SpecResult {
  const faults: SpecFault[] = [];
  const report: Report = (at, message, fix) => void faults.push(fault(at, message, fix));
  checkBounds(value, report);
  // Lists that are too long are not checked further.
  if (faults.length === 0) checkRules(checkShape(value, report), report);
  return faults.length > 0 ? { faults } : { spec: completed(value) };
}

function checkBounds(value: unknown, report: Report): void {
  const over = fieldOver(value, BOUNDS['cluster spec']);
  if (over !== undefined) {
    report(over.field.split('.'), `has ${over.entries} entries`, `write at most ${over.most}`);
    return;
  }
  const servers = isRecord(value) && Array.isArray(value['apiServers']) ? value['apiServers'] : [];
  const hosts = servers.filter((server) => isRecord(server) && server['address'] === undefined).length;
  if (hosts <= MOST_HOSTS) return;
  const message = `has ${hosts} entries without an address, each of which may stand for 32 addresses`;
  report(['apiServers'], message, `write at most ${MOST_HOSTS} of them`);
}

/** Checks the rules of all fields. A rule ignores parts with a wrong shape, because the check of the shape reports them. */
function checkRules(draft: SpecDraft, report: Report): void {
  checkKubeconfigField(['kubeconfig'], draft.kubeconfig, report);
  checkApiServers(draft, report);
  checkServiceRanges(draft, report);
  checkNodePortRange(draft, report);
  checkMasterCount(draft, report);
  checkLeases(draft, report);
  checkPorts(draft, report);
  checkFamilies(draft, report);
}

function completed(value: unknown): ClusterSpec {
  const { serviceClusterIPRange: serviceClusterIPRanges, ...spec } = writtenSpecShape.parse(value);
  return { ...spec, serviceClusterIPRanges };
}

/** Checks that leases last at least `LEASE_INTERVALS` intervals. Otherwise, a slightly late tick would find them expired. */
function checkLeases({ endpoints, intervalSeconds }: SpecDraft, report: Report): void {
  const { leaseSeconds, reconciler } = endpoints ?? {};
  if (leaseSeconds === undefined || reconciler === undefined || reconciler === 'none') return;
  const at = ['endpoints', 'leaseSeconds'];
  const interval = intervalSeconds?.['kubernetes-service'] ?? 0;
  if (leaseSeconds < 1 || leaseSeconds > DAY_SECONDS) {
    report(at, `${leaseSeconds} s is not a valid time for a lease`, `write seconds from 15 to ${DAY_SECONDS} (a day)`);
  } else if (leaseSeconds < LEASE_INTERVALS * interval) {
    const message = `${leaseSeconds} s is less than ${LEASE_INTERVALS} times the interval of kubernetes-service, ${interval} s`;
    report(at, message, `write ${Math.ceil(LEASE_INTERVALS * interval)} or more`);
  }
}

function checkMasterCount({ endpoints, apiServers }: SpecDraft, report: Report): void {
  const { masterCount, reconciler } = endpoints ?? {};
  const servers = apiServers?.length ?? 0;
  if (reconciler !== 'master-count' || masterCount === undefined || masterCount >= servers) return;
  const message = `${masterCount} is less than the ${servers} API servers in apiServers`;
  report(['endpoints', 'masterCount'], message, `write ${servers} or more`);
}
