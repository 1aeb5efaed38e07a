import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { fingerprintOf, parseRequest } from '../../lib/allocate/request.ts';
import { ANSWER_SCHEMA, REQUEST_SCHEMA } from '../../tools/json-schemas.ts';
import { schemaFaults } from '../support/json-schema-check.ts';
import { readInRepository } from '../support/repository.ts';

const NEXT = { range: 'serviceips', next: true };
const good = { requestId: 'r1', cluster: 'demo', operation: 'allocate', items: [NEXT] };
const forItem = (range: string, fields: object = {}) => ({ ...good, items: [{ range, ...fields }] });
const held = (fields: object) => ({ ...good, hold: { owner: 'a', ...fields } });
const RELEASE = { ...forItem('serviceips', { value: '10.0.0.1' }), operation: 'release' };
const released = (fields: object = {}) => ({ ...RELEASE, ...fields });
const schema = REQUEST_SCHEMA;

function faultOf(event: unknown): string {
  try {
    parseRequest(event);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'BadEvent') return error.message;
    throw error;
  }
  throw new Error('expected a fault');
}

test.each([
  ['for any address', good],
  ['for any three ports', forItem('servicenodeports', { next: true, count: 3 })],
  ['for a port by its number', forItem('servicenodeports', { value: 30_080 })],
  ['with an id of 63 letters', { ...good, requestId: 'x'.repeat(63) }],
  ['with a hold until a time', held({ until: '2026-01-31T12:00:00Z', takenUpBy: 'owner' })],
  ['with a hold that never ends', held({ until: 'forever' })],
  ['for 256 addresses', { ...good, items: [{ ...NEXT, count: 256 }] }],
  ['to release', released()],
  ['for a Service with a label', { ...good, takeUp: { holdOwner: 'team-a' } }],
  ['for a dry run', { ...good, dryRun: true }],
])('a request %s is valid', (_, event) => {
  expect(parseRequest(event)).toEqual(event);
  expect(schemaFaults(schema, event)).toEqual([]);
});

test.each(['', '-a', 'a.', 'a b', 'a\n', 'é', 'x'.repeat(10_240)])('the owner of a hold cannot be %j', (owner) => {
  const fault = faultOf(held({ owner }));
  expect(fault).toContain('hold.owner is not 1 to 63 of A-Z');
  expect(fault.length).toBeLessThan(300);
});

test.each<[string, unknown, string]>([
  ['that is not an object', 'allocate', 'the event is not of type object'],
  ['without an id', { ...good, requestId: undefined }, 'requestId is not of type string'],
  ['with an id of 64 letters', { ...good, requestId: 'x'.repeat(64) }, 'requestId is not 1 to 63 of A-Z'],
  ['with another operation', { ...good, operation: 'take' }, 'operation is none of allocate, release, lookUp'],
  ['without items', { ...good, items: [] }, 'items is empty'],
  ['with an item that has neither "value" nor "next"', forItem('serviceips'), 'items.0 needs either "value"'],
  [
    'with an item that has both "value" and "next"',
    { ...good, items: [{ ...NEXT, value: '10.0.0.1' }] },
    'items.0 needs either "value", an address or port, or "next"',
  ],
  ['with a port as text', forItem('servicenodeports', { value: '30080' }), 'items.0.value is not the number of a port'],
  ['with an address as a number', forItem('serviceips', { value: 1 }), 'items.0.value is not the text of an address'],
  ['with a count of 257', { ...good, items: [{ ...NEXT, count: 257 }] }, 'items.0.count is above 256'],
  ['with an unknown field', { ...good, holder: 'a' }, '"holder" is not known'],
  ['with a hold that has no owner', { ...good, hold: {} }, 'hold.owner is not of type string'],
  ['with a hold until tomorrow', held({ until: 'tomorrow' }), 'hold.until is neither "forever" nor a time such as'],
  ['with an unknown field of takeUp', { ...good, takeUp: { owner: 'a' } }, 'takeUp: "owner" is not known'],
  ['with an invalid cluster name', { ...good, cluster: '#clusters' }, 'cluster is not the name of a cluster'],
])('a request %s is refused', (_, event, fault) => {
  expect(faultOf(event)).toContain(`docs/allocate-request.schema.json): ${fault}`);
  expect(schemaFaults(schema, JSON.parse(JSON.stringify(event)))).not.toEqual([]);
});

test.each<[string, unknown, string]>([
  [
    'for twice 200 addresses',
    { ...good, items: Array(2).fill({ ...NEXT, count: 200 }) },
    'items requests 400 addresses',
  ],
  ['to release any address', { ...good, operation: 'release' }, 'items.0.next is only for "allocate"'],
  ['to release with a hold', released({ hold: { owner: 'a' } }), 'hold is only for "allocate"'],
  ['for an owner, without a hold', { ...good, owner: 'a' }, 'owner is only for "release": to allocate, set hold.owner'],
  ['to release for a Service', released({ takeUp: {} }), 'takeUp is only for "allocate"'],
  ['for one value twice', forItem('serviceips', { value: '10.0.0.1', count: 2 }), 'items.0.count is only for "next"'],
])('a request %s is refused by a rule that the schema cannot contain', (_, event, fault) => {
  expect(faultOf(event)).toContain(fault);
});

test('a refusal lists the faults of the request up to a limit, and contains the number of faults beyond the limit', () => {
  expect(faultOf({ operation: 'take', items: [{}] })).toMatch(
    /requestId is not.*; cluster is not.*; operation is none.*; items\.0\.range is none/,
  );
  const many = faultOf({ ...good, items: Array(256).fill({ range: 'x' }) });
  expect(many).toMatch(/items\.19\.range [^;]*; and 236 more$/);
  expect(many.length).toBeLessThan(2_000);
});

test.each([
  ['300,000 items', { items: Array(300_000).fill({}) }, /items requests 300000 .*, but the limit is 256/],
  ['100,000 unknown fields', Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [at, 1])), /"0", "1"/],
])('a request with %s is refused with a short message', (_, event, fault) => {
  expect(faultOf(event)).toMatch(fault);
  expect(faultOf(event).length).toBeLessThan(2_000);
});

describe('The fingerprint of a request', () => {
  const of = (changed: object) => fingerprintOf(parseRequest({ ...held({}), ...changed }));

  test.each([
    ['the order of fields', { hold: { takenUpBy: 'any', owner: 'a' }, items: [{ next: true, range: 'serviceips' }] }],
    ['a default value that it contains', { items: [{ ...NEXT, count: 1 }] }],
    ['dryRun', { dryRun: true }],
  ])('the fingerprint of a request does not depend on %s', (_, changed) => {
    expect(of(changed)).toBe(of({}));
  });

  test.each<[string, object]>([
    ['the operation', released({ hold: undefined })],
    ['the count', { items: [{ ...NEXT, count: 2 }] }],
    ['the range', { items: [{ ...NEXT, range: 'servicenodeports' }] }],
    ['the owner of a hold', { hold: { owner: 'b' } }],
    ['the end of a hold', { hold: { owner: 'a', until: 'forever' } }],
    ['takeUp', { takeUp: {} }],
    ['takenUpBy', { hold: { owner: 'a', takenUpBy: 'owner' } }],
  ])('the fingerprint of a request depends on %s', (_, changed) => {
    expect(of(changed)).not.toBe(of({}));
  });

  test('the fingerprint of a request for a Service depends on holdOwner, and the fingerprint of a release depends on owner', () => {
    const services = [{}, { holdOwner: 'a' }, { holdOwner: 'b' }].map((takeUp) => of({ takeUp }));
    const releases = [{}, { owner: 'a' }, { owner: 'b' }].map((owner) => of(released({ hold: undefined, ...owner })));
    expect(new Set([...services, ...releases]).size).toBe(6);
  });

  test('the fingerprint of a request without takeUp is the same in all versions, because the table keeps fingerprints for a day', () => {
    expect(of({})).toBe(
      createHash('sha256').update('["allocate",[["serviceips",null,1]],["a",null,"any"]]').digest('base64url'),
    );
  });
});

test('the schema of answers contains exactly the codes that an answer can have', () => {
  const { error } = ANSWER_SCHEMA['properties'] as Record<string, { description: string }>;
  const named = error?.description.match(/\b[A-Z][A-Za-z]+\b/g)?.slice(1) ?? [];
  const ofAllocate = ['answer', 'items', 'request-context', 'execute-request'].map((name) => `allocate/${name}`);
  const written = [...ofAllocate, 'range/operations']
    .map((file) => readInRepository(`lib/${file}.ts`))
    .flatMap((text) => [...text.matchAll(/refused\(\s*'(\w+)'/g)].map(([, code = '']) => code));
  const ofAllocators = ['Full', 'AlreadyAllocated', 'NotInRange', 'NotReady', 'MismatchedRange', 'HoldsFull'];
  expect([...named].sort()).toEqual([...new Set([...ofAllocators, ...written])].sort());
});
