import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { fromBits, type RangeSnapshot } from '../../lib/allocator/snapshot-bytes.ts';
import { ExchangeError } from '../../lib/exchange/errors.ts';
import { readExchangeFile } from '../../lib/exchange/exchange-file.ts';
import { bytesField, integerField, joined } from '../../lib/exchange/protobuf.ts';
import { MAGIC, rangeAllocationToJson, rangeAllocationToStorage } from '../../lib/exchange/range-allocation.ts';
import { rangeItems } from '../../lib/exchange/range-items.ts';
import { runs } from '../support/properties.ts';
import { bitsBelow, RANGES, read, refusal, SERVICE_IPS, STORED_SERVICE_IPS, utf8 } from './files.ts';

const snapshots: fc.Arbitrary<RangeSnapshot> = RANGES.chain(([range, max]) =>
  fc.record({ range: fc.constant(range), data: bitsBelow(max) }),
);

const ALLOCATION: RangeSnapshot = { range: '10.0.0.0/24', data: fromBits([0, 9]) };
const STORAGE = rangeAllocationToStorage(ALLOCATION);

describe('A RangeAllocation', () => {
  test('as an API server keeps it in etcd is read, and written again to the byte', () => {
    const file = read(STORED_SERVICE_IPS);
    expect(file).toMatchObject({ kind: 'RangeAllocation' });
    if (file.kind !== 'RangeAllocation') throw new Error('another kind');
    const items = rangeItems(file.allocation.range);
    if (items instanceof ExchangeError) throw items;
    expect([...items.in(file.allocation.data)]).toEqual(SERVICE_IPS);
    expect(Buffer.from(rangeAllocationToStorage(file.allocation))).toEqual(STORED_SERVICE_IPS);
  });

  test.each([
    { form: 'storage', write: rangeAllocationToStorage },
    { form: 'json', write: rangeAllocationToJson },
  ])('is the same after a round trip, whatever it holds: $form', ({ write }) => {
    fc.assert(
      fc.property(snapshots, (allocation) => {
        expect(read(write(allocation))).toEqual({ kind: 'RangeAllocation', allocation });
      }),
    );
  });

  test('is written as JSON that API servers take', () => {
    expect(JSON.parse(rangeAllocationToJson(ALLOCATION))).toEqual({
      apiVersion: 'v1',
      kind: 'RangeAllocation',
      metadata: {},
      range: '10.0.0.0/24',
      data: 'AgE=',
    });
  });

  test.each([
    { what: 'no metadata', fields: {} },
    { what: 'null metadata', fields: { metadata: null } },
    { what: 'no creation time', fields: { metadata: { creationTimestamp: null } } },
    { what: 'unknown metadata', fields: { metadata: { managedFields: [{ manager: 'm' }], futureField: 1 } } },
    { what: 'unknown fields', fields: { futureField: true } },
    { what: 'padded data', fields: { data: 'AAACAQ==' } },
  ])('in JSON may have $what', ({ fields }) => {
    const object = { apiVersion: 'v1', kind: 'RangeAllocation', range: '10.0.0.0/24', data: 'AgE=', ...fields };
    expect(read(JSON.stringify(object))).toMatchObject({ allocation: ALLOCATION });
  });

  test('has the creation time of its metadata, in whole seconds', () => {
    const metadata = { creationTimestamp: '2019-03-01T13:00:00.7+01:00' };
    const object = { apiVersion: 'v1', kind: 'RangeAllocation', metadata, range: '10.0.0.0/24', data: 'AgE=' };
    expect(read(JSON.stringify(object))).toMatchObject({ allocation: { createdAt: '2019-03-01T12:00:00Z' } });
  });

  test.each([{ data: undefined }, { data: null }, { data: '' }])(
    'with the data $data has nothing taken',
    ({ data }) => {
      const object = { apiVersion: 'v1', kind: 'RangeAllocation', range: '30000-32767', data };
      expect(read(JSON.stringify(object))).toMatchObject({ allocation: { data: new Uint8Array(0) } });
    },
  );

  test('may have been printed by etcdctl, with a newline after it', () => {
    expect(read(joined(STORAGE, utf8('\n')))).toMatchObject({ allocation: ALLOCATION });
  });

  test('of another encoder may end with a byte that looks like that newline', () => {
    const data = fromBits([1, 3]);
    const raw = joined(bytesField(2, '10.0.0.0/24'), bytesField(3, data));
    const bytes = envelope(raw);
    expect(bytes.at(-1)).toBe(0x0a);
    expect(read(bytes)).toMatchObject({ allocation: { data } });
  });

  test('is read with metadata that a later version wrote', () => {
    const meta = joined(
      bytesField(1, 'n'),
      integerField(2047, 5n),
      bytesField(99, 'new'),
      bytesField(8, integerField(1, 0n)),
    );
    const raw = joined(bytesField(1, meta), bytesField(2, '10.0.0.0/24'), integerField(77, -1n));
    expect(read(envelope(raw))).toMatchObject({
      allocation: { range: '10.0.0.0/24', createdAt: '1970-01-01T00:00:00Z' },
    });
  });
});

describe('What is no RangeAllocation', () => {
  const json = (object: object) => utf8(JSON.stringify({ apiVersion: 'v1', kind: 'RangeAllocation', ...object }));
  const withRange = (range: string, data: string) => json({ range, data });

  test.each([
    ['nothing', utf8(''), refusal('UnknownForm', 'empty')],
    ['text', utf8('10.0.0.1\n'), refusal('UnknownForm', 'neither JSON nor', 'etcdctl')],
    ['an encrypted object', utf8('k8s:enc:aescbc:v1:key1:…'), refusal('UnknownForm', 'encrypted')],
    ['JSON that is cut off', utf8('{"apiVersion":"v1"'), refusal('Malformed', 'no JSON')],
    ['JSON without a kind', utf8('{}'), refusal('WrongKind', 'has no kind')],
    ['a Secret', json({ kind: 'Secret' }), refusal('WrongKind', '"v1 Secret"')],
    ['one without a range', json({}), refusal('Malformed', 'range is not of type')],
    ['one with an empty range', withRange('', ''), refusal('Malformed', 'names no range')],
    ['a range that is none', withRange('10.0.0.0/33', ''), refusal('Malformed', '10.0.0.0/33')],
    ['data that is no base64', withRange('1-2', 'AgE'), refusal('Malformed', 'base64')],
    [
      'a creation time that is none',
      json({ range: '1-2', metadata: { creationTimestamp: 'soon' } }),
      refusal('Malformed', 'creationTimestamp'),
    ],
    [
      'data longer than the range',
      withRange('30000-30007', 'AQA='),
      refusal('NotInRange', 'item 8', '30000-30007 has 8 ports'),
    ],
    ['an object that is not in the envelope', MAGIC, refusal('WrongKind')],
    ['a stored Secret', envelope(new Uint8Array(0), 'Secret'), refusal('WrongKind', '"v1 Secret"')],
    [
      'a stored object that is encoded once more',
      joined(STORAGE, bytesField(3, 'gzip')),
      refusal('UnknownForm', 'gzip'),
    ],
    ['a text where a message should be', envelope(bytesField(1, 'no message')), refusal('Malformed')],
    ['a text that is no UTF-8', envelope(bytesField(2, Uint8Array.of(0xc3))), refusal('Malformed', 'UTF-8')],
    [
      'a creation time that is out of all time',
      envelope(joined(bytesField(1, bytesField(8, integerField(1, 2n ** 62n))), bytesField(2, '1-2'))),
      refusal('Malformed', 'creationTimestamp'),
    ],
    [
      'a length beyond the end',
      joined(MAGIC, Uint8Array.of(0x0a, 0x7f, 0)),
      refusal('Malformed', '126 bytes are missing'),
    ],
    ['a number of eleven bytes', joined(MAGIC, new Uint8Array(11).fill(0xff)), refusal('Malformed', '10 bytes')],
    ['a field 0', joined(MAGIC, Uint8Array.of(2, 0)), refusal('Malformed', 'number 0')],
    ['a group', joined(MAGIC, Uint8Array.of(0x0b)), refusal('Malformed', 'wire type 3')],
    ['100 MB', new Uint8Array(100 * 1024 * 1024), refusal('TooLarge', '104857600 bytes')],
  ])('is refused: %s', (_, bytes, expected) => {
    expect(readExchangeFile(bytes)).toEqual(expected);
  });

  test('is refused, or the whole object, wherever the file is cut off', () => {
    const whole = read(STORED_SERVICE_IPS);
    for (let length = 0; length < STORED_SERVICE_IPS.length; length++) {
      const file = readExchangeFile(STORED_SERVICE_IPS.subarray(0, length));
      if (!(file instanceof ExchangeError)) expect(file).toEqual(whole);
    }
  });

  test('never makes the reader throw, whatever the bytes are', () => {
    const damaged = fc.tuple(fc.nat(STORAGE.length - 1), fc.nat(255)).map(([at, byte]) => STORAGE.with(at, byte));
    const garbage = fc.uint8Array({ maxLength: 200 }).map((bytes) => joined(MAGIC, bytes));
    const json = fc.json().map(utf8);
    fc.assert(
      fc.property(fc.oneof(damaged, garbage, json), (bytes) => {
        readExchangeFile(bytes);
      }),
      { numRuns: runs(100) },
    );
  });

  test('may be nested a hundred thousand times', () => {
    const deep = `{"apiVersion":"v1","kind":"RangeAllocation","range":"1-2","metadata":{"x":${'['.repeat(1e5)}${']'.repeat(1e5)}}}`;
    expect(read(deep)).toMatchObject({ allocation: { range: '1-2' } });
  });
});

function envelope(raw: Uint8Array, kind = 'RangeAllocation'): Uint8Array {
  return joined(MAGIC, bytesField(1, joined(bytesField(1, 'v1'), bytesField(2, kind))), bytesField(2, raw));
}
