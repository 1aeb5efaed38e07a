// Writes the pages of docs/ that are made from the code: npm run docs
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { EXPLANATIONS } from '../cli/explain/explanations.ts';
import { parameterTable } from '../deploy/parameters.ts';
import { grafanaDashboard, guideTable, prometheusRules } from '../deploy/prometheus-rules.ts';
import { ANSWER_SCHEMA, EVENT_SCHEMA, type JsonSchema, REQUEST_SCHEMA, SPEC_SCHEMA } from './json-schemas.ts';

const DOCS = path.join(import.meta.dirname, '../docs');

/** For each page, a function that returns the new text from the current text. */
const PAGES: Readonly<Record<string, (current: string) => string>> = {
  'cluster-spec.schema.json': () => textOf(SPEC_SCHEMA),
  'allocate-request.schema.json': () => textOf(REQUEST_SCHEMA),
  'allocate-answer.schema.json': () => textOf(ANSWER_SCHEMA),
  'cluster-event.schema.json': () => textOf(EVENT_SCHEMA),
  'findings.md': (page) => withTables(page, explanationTable, /(### (\w+: .+)\n)\n(?:\|.*\n)*/g),
  'cluster-spec.md': (page) => withTables(page, fieldTable),
  'parameters.md': (page) => withTables(page, parameterTable),
  'runbook.md': (page) => withTables(page, guideTable),
  '../deploy/kubernetes/monitoring/rules.yaml': prometheusRules,
  '../deploy/kubernetes/monitoring/dashboard.json': grafanaDashboard,
};

export function generatedPages() {
  return Object.entries(PAGES).map(([page, change]) => {
    const file = path.join(DOCS, page);
    const current = readFileSync(file, 'utf8');
    return { page, file, current, generated: change(current) };
  });
}

/** Returns a page with a table below each mark, such as `<!-- table: name -->`. */
function withTables(
  page: string,
  rowsOf: (name: string) => readonly string[],
  marked = /(<!-- table: (.+) -->\n)\n(?:\|.*\n)*/g,
): string {
  return page.replaceAll(marked, (_, mark: string, name: string) => `${mark}\n${rowsOf(name).join('\n')}\n`);
}

function textOf(schema: JsonSchema): string {
  return `${JSON.stringify(schema, null, 2)}\n`;
}

/** Returns a table of docs/findings.md, with events and tasks. @param heading such as `Findings: action required` */
function explanationTable(heading: string): string[] {
  const [kind, severity] = heading.toLowerCase().split('s: ');
  const explained = EXPLANATIONS.filter((one) => one.kind === kind && one.severity === severity);
  const rows = explained.map(({ word, title, reasons, task }) => {
    const events = reasons.length > 0 && ` Events: ${reasons.map((reason) => `\`${reason}\``).join(', ')}.`;
    const page = task !== undefined && ` Task: [${titleOf(`tasks/${task}.md`)}](tasks/${task}.md).`;
    return `| \`${word}\` | ${title}.${events || ''}${page || ''} |`;
  });
  return [`| ${kind} | meaning |`, '| --- | --- |', ...rows];
}

function titleOf(page: string): string {
  return /^# (.*)/.exec(readFileSync(path.join(DOCS, page), 'utf8'))?.[1] ?? '';
}

/** Returns a table of docs/cluster-spec.md with the fields in `names`, such as `name, mode`, and the fields below them. */
function fieldTable(names: string): string[] {
  const rows = fieldsOf(SPEC_SCHEMA)
    .filter(({ path }) => names.split(', ').includes(path.split(/[.[]/)[0] ?? ''))
    .map(({ path, meaning, standard }) => `| \`${path}\` | ${meaning} | ${standard} |`);
  return ['| field | meaning | default |', '| --- | --- | --- |', ...rows];
}

type Row = Readonly<Record<'path' | 'meaning' | 'standard', string>>;

/** Returns all fields except mappings. The fields of list entries follow their list. */
function fieldsOf(part: JsonSchema, path = ''): Row[] {
  const { properties, items, required } = part as {
    readonly properties?: Readonly<Record<string, JsonSchema>>;
    readonly items?: JsonSchema;
    readonly required?: readonly string[];
  };
  return [
    ...Object.entries(properties ?? {}).flatMap(([name, field]) => {
      const at = path === '' ? name : `${path}.${name}`;
      const isNested = name === 'kubeconfig' && path !== '';
      if (isNested) return [{ path: at, meaning: 'The same fields as in `kubeconfig`.', standard: 'required' }];
      const own = field['properties'] === undefined ? [rowOf(at, field, required?.includes(name) === true)] : [];
      return [...own, ...fieldsOf(field, at)];
    }),
    ...(items === undefined ? [] : fieldsOf(items, `${path}[]`)),
  ];
}

function rowOf(path: string, field: JsonSchema, isRequired: boolean): Row {
  const [meaning = '', described = ''] = String(field['description']).split(/ Default: (.*)\.$/);
  const standard = field['default'] === undefined ? described : `\`${[field['default']].flat().join('`, `')}\``;
  return {
    path,
    meaning: meaning
      .replaceAll(/\S*<\S+>[^\s:]*/g, '`$&`')
      .replaceAll(/^\w[\w-]*(?=: )|(?<=\. )[a-z][\w-]*(?=: )/g, '`$&`'),
    standard: isRequired ? 'required' : standard,
  };
}

if (import.meta.main) {
  for (const { file, generated } of generatedPages()) writeFileSync(file, generated);
}
