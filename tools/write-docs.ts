// Writes the pages of docs/ that are made from the code: npm run docs
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { alarmTable } from '../deploy/alarms.ts';
import { parameterTable } from '../deploy/parameters.ts';
import { COST_TABLES } from './cost.ts';
import { findingsPage } from './findings-page.ts';
import { answerJsonSchema, clusterEventJsonSchema, requestJsonSchema, specJsonSchema } from './json-schemas.ts';
import { withTables } from './page-tables.ts';
import { fieldTable } from './spec-table.ts';

const docs = path.join(import.meta.dirname, '..', 'docs');

writeSchema('cluster-spec', specJsonSchema());
writeSchema('allocate-request', requestJsonSchema());
writeSchema('allocate-answer', answerJsonSchema());
writeSchema('cluster-event', clusterEventJsonSchema());
writeFileSync(path.join(docs, 'findings.md'), findingsPage());
rewrite('cost.md', (page) => withTables(page, (name) => COST_TABLES[name]?.() ?? []));
rewrite('cluster-spec.md', (page) => withTables(page, fieldTable));
rewrite('parameters.md', (page) => withTables(page, parameterTable));
rewrite('runbook.md', (page) => withTables(page, alarmTable));

function rewrite(page: string, change: (text: string) => string): void {
  const file = path.join(docs, page);
  writeFileSync(file, change(readFileSync(file, 'utf8')));
}

function writeSchema(name: string, schema: object): void {
  writeFileSync(path.join(docs, `${name}.schema.json`), `${JSON.stringify(schema, null, 2)}\n`);
}
