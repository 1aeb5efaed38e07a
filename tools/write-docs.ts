// Writes the pages of docs/ that are made from the code: npm run docs
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parameterTable } from '../deploy/parameters.ts';
import { grafanaDashboard, guideTable, prometheusRules } from '../deploy/prometheus-rules.ts';
import { findingsPage } from './findings-page.ts';
import { answerJsonSchema, clusterEventJsonSchema, requestJsonSchema, specJsonSchema } from './json-schemas.ts';
import { fieldTable } from './spec-table.ts';

/** The text of each page, made from its current text. */
const PAGES: Readonly<Record<string, (current: string) => string>> = {
  'cluster-spec.schema.json': () => textOf(specJsonSchema()),
  'allocate-request.schema.json': () => textOf(requestJsonSchema()),
  'allocate-answer.schema.json': () => textOf(answerJsonSchema()),
  'cluster-event.schema.json': () => textOf(clusterEventJsonSchema()),
  'findings.md': findingsPage,
  'cluster-spec.md': (page) => withTables(page, fieldTable),
  'parameters.md': (page) => withTables(page, parameterTable),
  'runbook.md': (page) => withTables(page, guideTable),
  '../deploy/kubernetes/monitoring/rules.yaml': prometheusRules,
  '../deploy/kubernetes/monitoring/dashboard.json': grafanaDashboard,
};

export function generatedPages() {
  return Object.entries(PAGES).map(([page, change]) => {
    const file = path.join(import.meta.dirname, '../docs', page);
    const current = readFileSync(file, 'utf8');
    return { page, file, current, generated: change(current) };
  });
}

/** Returns a page with a table below each line `<!-- table: name -->`. */
function withTables(page: string, rowsOf: (name: string) => readonly string[]): string {
  return page.replaceAll(
    /(<!-- table: (.+) -->\n)\n(?:\|.*\n)*/g,
    (_, mark: string, name: string) => `${mark}\n${rowsOf(name).join('\n')}\n`,
  );
}

function textOf(schema: object): string {
  return `${JSON.stringify(schema, null, 2)}\n`;
}

if (import.meta.main) {
  for (const { file, generated } of generatedPages()) writeFileSync(file, generated);
}
