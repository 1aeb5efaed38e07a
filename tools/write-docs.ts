// Writes the pages of docs/ that are made from the code: npm run docs
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { withAlarmTable } from '../deploy/alarms.ts';
import { parametersPage } from '../deploy/parameters.ts';
import { specJsonSchema } from '../lib/spec/spec-json-schema.ts';
import { answerJsonSchema, requestJsonSchema } from './allocate-schemas.ts';
import { costPage } from './cost-report.ts';
import { clusterEventJsonSchema } from './event-schema.ts';
import { findingsPage } from './findings-page.ts';

const docs = path.join(import.meta.dirname, '..', 'docs');

writeSchema('cluster-spec', specJsonSchema());
writeSchema('allocate-request', requestJsonSchema());
writeSchema('allocate-answer', answerJsonSchema());
writeSchema('cluster-event', clusterEventJsonSchema());
writeFileSync(path.join(docs, 'findings.md'), findingsPage());
writeFileSync(path.join(docs, 'parameters.md'), parametersPage());
writeFileSync(path.join(docs, 'cost.md'), costPage());
const runbook = path.join(docs, 'runbook.md');
writeFileSync(runbook, withAlarmTable(readFileSync(runbook, 'utf8')));

function writeSchema(name: string, schema: object): void {
  writeFileSync(path.join(docs, `${name}.schema.json`), `${JSON.stringify(schema, null, 2)}\n`);
}
