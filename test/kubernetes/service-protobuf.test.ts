import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { readService } from '../../lib/kubernetes/item-readers.ts';
import { MalformedProtobuf, readStatus } from '../../lib/kubernetes/protobuf.ts';
import { ProtobufList } from '../../lib/kubernetes/streamed-list.ts';
import { runs } from '../support/properties.ts';
import { envelope, message, serviceList, status } from './protobuf-writer.ts';

const text = fc.string({ maxLength: 40, unit: 'grapheme' });
const claim = fc.record(
  {
    namespace: text,
    name: text,
    uid: text,
    resourceVersion: text,
    type: text,
    clusterIP: text,
    clusterIPs: fc.array(text, { maxLength: 3 }),
    ports: fc.array(fc.record({ protocol: text, nodePort: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }) }), {
      maxLength: 4,
    }),
    healthCheckNodePort: fc.nat({ max: 65_535 }),
    createdAtMs: fc.nat({ max: 4_294_967_295 }).map((seconds) => seconds * 1000),
    holdOwner: text,
  },
  {
    requiredKeys: [
      'namespace',
      'name',
      'uid',
      'resourceVersion',
      'type',
      'clusterIP',
      'clusterIPs',
      'ports',
      'healthCheckNodePort',
      'createdAtMs',
    ],
  },
);

/** What comes of the bytes when they arrive in pieces of this size. */
function readServiceList(bytes: Uint8Array, size = bytes.length || 1) {
  const list = new ProtobufList('v1 ServiceList', readService);
  const services = [];
  for (let at = 0; at < bytes.length; at += size) services.push(...list.push(bytes.subarray(at, at + size)));
  return { services, ...list.end() };
}

function outcomeOf(read: () => unknown): unknown {
  try {
    read();
    return 'read';
  } catch (error) {
    return error;
  }
}

describe('a list of Services in protobuf', () => {
  test('a list of Services in protobuf is read back unchanged, in any pieces, and unknown fields are skipped', () => {
    fc.assert(
      fc.property(
        fc.array(claim, { maxLength: 5 }),
        text,
        text,
        fc.integer({ min: 1, max: 2_000 }),
        (services, resourceVersion, continueToken, size) => {
          const bytes = serviceList(services, { resourceVersion, continueToken });
          expect(readServiceList(bytes, size)).toEqual({ services, resourceVersion, continueToken });
        },
      ),
    );
  });

  test('a list of Services in protobuf is read the same from the middle of a larger buffer', () => {
    const bytes = serviceList([]);
    const larger = Buffer.concat([Buffer.from('before'), bytes, Buffer.from('after')]);
    expect(readServiceList(larger.subarray(6, 6 + bytes.length))).toMatchObject({ services: [], resourceVersion: '9' });
  });

  test('a list that is cut off before its end is malformed', () => {
    fc.assert(
      fc.property(fc.array(claim, { minLength: 1, maxLength: 3 }), fc.nat(), (services, cut) => {
        // The last four bytes are empty fields of the envelope.
        const whole = serviceList(services).subarray(0, -4);
        const outcome = outcomeOf(() => readServiceList(whole.subarray(0, cut % whole.length)));
        expect(outcome).toBeInstanceOf(MalformedProtobuf);
      }),
    );
  });

  test('random bytes are malformed or an empty list, and reading always ends', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (junk) => {
        for (const bytes of [junk, envelope('v1', 'ServiceList', Buffer.from(junk))]) {
          const outcome = outcomeOf(() => readServiceList(bytes));
          expect(outcome === 'read' || outcome instanceof MalformedProtobuf).toBe(true);
        }
      }),
      { numRuns: runs(100) },
    );
  });

  test('changed bytes are malformed or another list, and reading always ends', () => {
    const changes = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(fc.array(claim, { minLength: 1, maxLength: 3 }), changes, (services, bytes) => {
        const list = serviceList(services);
        for (const [at, byte] of bytes) list[at % list.length] = byte;
        const outcome = outcomeOf(() => readServiceList(list));
        expect(outcome === 'read' || outcome instanceof MalformedProtobuf).toBe(true);
      }),
      { numRuns: runs(100) },
    );
  });

  test.each([
    ['of another kind', envelope('v1', 'PodList', Buffer.alloc(0)), /no v1 ServiceList, but v1 PodList/],
    ['of another version', envelope('v2', 'ServiceList', Buffer.alloc(0)), /but v2 ServiceList/],
    ['without its magic bytes', serviceList([]).subarray(4), /does not start/],
    ['of nothing', Buffer.alloc(0), /does not start/],
    ['with text where a message belongs', envelope('v1', 'ServiceList', message([2, 5])), /wire type 0 instead of 2/],
    ['with a number of eleven bytes', envelope('v1', 'ServiceList', Buffer.alloc(11, 0xff)), /longer than 10 bytes/],
    ['with a field 0', envelope('v1', 'ServiceList', Buffer.of(2, 0)), /number 0/],
    ['with a group', envelope('v1', 'ServiceList', Buffer.of(0x2b)), /wire type 3/],
    [
      'with a length beyond its end',
      envelope('v1', 'ServiceList', Buffer.of(0x12, 0x7f)),
      /beyond the end of its list/,
    ],
  ])('%s is malformed', (_, bytes, problem) => {
    expect(outcomeOf(() => readServiceList(bytes))).toMatchObject({ message: expect.stringMatching(problem) });
  });

  test('a list can have fixed-size numbers among the fields that are skipped', () => {
    const fixed = Buffer.concat([Buffer.of(0x79), Buffer.alloc(8, 0xff), Buffer.of(0x7d), Buffer.alloc(4, 0xff)]);
    const raw = Buffer.concat([fixed, message([1, message([2, '9'])])]);
    expect(readServiceList(envelope('v1', 'ServiceList', raw))).toMatchObject({ resourceVersion: '9' });
    const outcome = outcomeOf(() => readServiceList(envelope('v1', 'ServiceList', fixed.subarray(0, 5))));
    expect(outcome).toBeInstanceOf(MalformedProtobuf);
  });
});

describe('a Status in protobuf', () => {
  test('a Status in protobuf contains the fields that a client uses', () => {
    expect(readStatus(status(429, 'TooManyRequests', 'slow down', 7))).toEqual({
      reason: 'TooManyRequests',
      message: 'slow down',
      retryAfterSeconds: 7,
    });
  });

  test('random bytes are malformed or an empty Status', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (junk) => {
        const outcome = outcomeOf(() => readStatus(envelope('v1', 'Status', Buffer.from(junk))));
        expect(outcome === 'read' || outcome instanceof MalformedProtobuf).toBe(true);
      }),
    );
  });
});
