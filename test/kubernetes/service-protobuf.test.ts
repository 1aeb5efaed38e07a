import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { listAllServices, SERVICE_READER } from '../../lib/kubernetes/item-readers.ts';
import { MalformedProtobuf, readStatus } from '../../lib/kubernetes/protobuf.ts';
import { streamedList } from '../../lib/kubernetes/streamed-list.ts';
import { runs } from '../support/properties.ts';
import { envelope, message, serviceList, status } from './protobuf-writer.ts';

const text = fc.string({ maxLength: 40, unit: 'grapheme' });
const name = fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' });
const ofAll = fc.record({
  namespace: name,
  name,
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
});
const claim = fc.oneof(
  ofAll,
  fc.tuple(ofAll, text).map(([fields, holdOwner]) => ({ ...fields, holdOwner })),
);

/** Reads a reply that arrives in pieces of this size. */
async function readServices(bytes: Uint8Array, size = bytes.length || 1) {
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  }
  const call = { server: 'https://10.0.0.1', purpose: 'list services', afterLostReply: false };
  const reply = { ...call, status: 200, headers: {}, body: new Uint8Array(), stream: pieces() };
  return listAllServices({ services: () => streamedList(async () => reply, SERVICE_READER) });
}

const malformed = { code: 'MalformedReply' };

/** Expects that these bytes are read as a list or are malformed. */
async function expectReadOrMalformed(bytes: Uint8Array): Promise<void> {
  const outcome: unknown = await readServices(bytes).catch((error: unknown) => error);
  if (!Array.isArray(outcome)) expect(outcome).toMatchObject(malformed);
}

describe('a list of Services in protobuf', () => {
  test('a list of Services in protobuf is read back unchanged, in any pieces, and unknown fields are skipped', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(claim, { maxLength: 5 }),
        fc.integer({ min: 1, max: 2_000 }),
        async (services, size) => {
          await expect(readServices(serviceList(services), size)).resolves.toEqual(services);
        },
      ),
    );
  });

  test('a list of Services in protobuf can be read from the middle of a larger buffer', async () => {
    const bytes = serviceList([]);
    const larger = Buffer.concat([Buffer.from('before'), bytes, Buffer.from('after')]);
    await expect(readServices(larger.subarray(6, 6 + bytes.length))).resolves.toEqual([]);
  });

  test('a list that is cut off before its end is malformed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(claim, { minLength: 1, maxLength: 3 }), fc.nat(), async (services, cut) => {
        // The last four bytes are empty fields of the envelope.
        const whole = serviceList(services).subarray(0, -4);
        await expect(readServices(whole.subarray(0, cut % whole.length))).rejects.toMatchObject(malformed);
      }),
    );
  });

  test('random bytes are read as malformed or as a list, and the read always ends', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (junk) => {
        for (const bytes of [junk, envelope('v1', 'ServiceList', Buffer.from(junk))])
          await expectReadOrMalformed(bytes);
      }),
      { numRuns: runs(100) },
    );
  });

  test('a changed list is read as malformed or as another list, and the read always ends', async () => {
    const changes = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(fc.array(claim, { minLength: 1, maxLength: 3 }), changes, async (services, bytes) => {
        const list = serviceList(services);
        for (const [at, byte] of bytes) list[at % list.length] = byte;
        await expectReadOrMalformed(list);
      }),
      { numRuns: runs(100) },
    );
  });

  test.each([
    ['of another kind', envelope('v1', 'PodList', Buffer.alloc(0)), /no v1 ServiceList, but v1 PodList/],
    ['of another version', envelope('v2', 'ServiceList', Buffer.alloc(0)), /but v2 ServiceList/],
    ['without its magic bytes', serviceList([]).subarray(4), /does not start/],
    ['without bytes', Buffer.alloc(0), /cut off/],
    ['with text where a message belongs', envelope('v1', 'ServiceList', message([2, 5])), /wire type 0 instead of 2/],
    ['with a number of eleven bytes', envelope('v1', 'ServiceList', Buffer.alloc(11, 0xff)), /longer than 10 bytes/],
    ['with a field 0', envelope('v1', 'ServiceList', Buffer.of(2, 0)), /number 0/],
    ['with a group', envelope('v1', 'ServiceList', Buffer.of(0x2b)), /wire type 3/],
    [
      'with a length beyond its end',
      envelope('v1', 'ServiceList', Buffer.of(0x12, 0x7f)),
      /beyond the end of its list/,
    ],
  ])('a list %s is malformed', async (_, bytes, problem) => {
    const message = expect.stringMatching(problem);
    await expect(readServices(bytes)).rejects.toMatchObject({ ...malformed, message });
  });

  test('fixed-size numbers in unknown fields of a list are skipped', async () => {
    const fixed = Buffer.concat([Buffer.of(0x79), Buffer.alloc(8, 0xff), Buffer.of(0x7d), Buffer.alloc(4, 0xff)]);
    const raw = Buffer.concat([fixed, message([1, message([2, '9'])])]);
    await expect(readServices(envelope('v1', 'ServiceList', raw))).resolves.toEqual([]);
    const cut = envelope('v1', 'ServiceList', fixed.subarray(0, 5));
    await expect(readServices(cut)).rejects.toMatchObject(malformed);
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

  test('random bytes are read as malformed or as a Status', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (junk) => {
        try {
          readStatus(envelope('v1', 'Status', Buffer.from(junk)));
        } catch (error) {
          expect(error).toBeInstanceOf(MalformedProtobuf);
        }
      }),
    );
  });
});
