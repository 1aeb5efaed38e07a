import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { answerJsonSchema, requestJsonSchema } from '../../tools/json-schemas.ts';

const docs = join(import.meta.dirname, '../../docs');

test.each([
  { name: 'allocate-request', schema: requestJsonSchema() },
  { name: 'allocate-answer', schema: answerJsonSchema() },
])('docs/$name.schema.json is up to date: npm run docs writes it', ({ name, schema }) => {
  expect(JSON.parse(readFileSync(join(docs, `${name}.schema.json`), 'utf8'))).toEqual(schema);
});

test('the schema of answers contains exactly the codes that an answer can have', () => {
  const { error } = answerJsonSchema()['properties'] as Record<string, { description: string }>;
  const named = error?.description.match(/\b[A-Z][A-Za-z]+\b/g)?.slice(1) ?? [];
  const written = ['answer', 'items', 'open-range', 'execute-request']
    .map((file) => readFileSync(join(docs, `../lib/allocate/${file}.ts`), 'utf8'))
    .flatMap((text) => [...text.matchAll(/refused\(\s*'(\w+)'/g)].map(([, code = '']) => code));
  const ofAllocators = ['Full', 'AlreadyAllocated', 'NotInRange', 'NotReady', 'MismatchedRange', 'HoldsFull'];
  expect([...named].sort()).toEqual([...new Set([...ofAllocators, ...written])].sort());
});
