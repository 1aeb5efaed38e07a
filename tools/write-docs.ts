// Writes the pages of docs/ that are made from the code: npm run docs
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { specJsonSchema } from '../cli/spec/spec-json-schema.ts';
import { withAlarmTable } from '../deploy/alarms.ts';
import { parametersPage } from '../deploy/parameters.ts';
import { answerJsonSchema, requestJsonSchema } from './allocate-schemas.ts';
import { costPage } from './cost-report.ts';
import { clusterEventJsonSchema } from './event-schema.ts';
import { findingsPage } from './findings-page.ts';
import { withFieldTables } from './spec-table.ts';

const docs = path.join(import.meta.dirname, '..', 'docs');

writeSchema('cluster-spec', specJsonSchema());
writeSchema('allocate-request', requestJsonSchema());
writeSchema('allocate-answer', answerJsonSchema());
writeSchema('cluster-event', clusterEventJsonSchema());
writeFileSync(path.join(docs, 'findings.md'), findingsPage());
writeFileSync(path.join(docs, 'parameters.md'), parametersPage());
writeFileSync(path.join(docs, 'cost.md'), costPage());
rewrite('cluster-spec.md', withFieldTables);
rewrite('runbook.md', withAlarmTable);

function rewrite(page: string, change: (text: string) => string): void {
  const file = path.join(docs, page);
  writeFileSync(file, change(readFileSync(file, 'utf8')));
}

function writeSchema(name: string, schema: object): void {
  writeFileSync(path.join(docs, `${name}.schema.json`), `${JSON.stringify(schema, null, 2)}\n`);
}
