import { constants, deflateRawSync, gzipSync } from 'node:zlib';
import { envelopeStart, fieldStart, message, serviceList } from '../kubernetes/protobuf-writer.ts';

/** A hostile reply: the server answers every request with the bytes of `wire`, which include the headers. */
export interface Attack {
  readonly name: string;
  readonly wire: () => Iterable<Buffer>;
  /** The wait between two pieces of the reply. */
  readonly everyMs?: number;
  /** The URL is `https://`, and the bytes answer a TLS ClientHello. */
  readonly tls?: true;
  /** The error codes of a call for an object and of a call for the list of Services. */
  readonly ends: { readonly get: string; readonly services: string };
}

const MIB = 1024 * 1024;
const JSON_TYPE = 'application/json';
const PROTOBUF_TYPE = 'application/vnd.kubernetes.protobuf';
const LIST_START = '{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[';
const BAD_SERVICE = {
  metadata: { name: 's', namespace: 'default' },
  spec: { clusterIP: 'bad', clusterIPs: ['bad', 'worse'] },
};
const TOO_LARGE = { get: 'ReplyTooLarge', services: 'ReplyTooLarge' };
const MALFORMED = { get: 'MalformedReply', services: 'MalformedReply' };
const UNAVAILABLE = { get: 'Unavailable', services: 'Unavailable' };

function head(type: string, more: readonly string[] = ['connection: close'], status = '200 OK'): Buffer {
  return Buffer.from([`HTTP/1.1 ${status}`, `content-type: ${type}`, ...more, '', ''].join('\r\n'));
}

/** Repeats the piece endlessly, in blocks of about 64 KiB. */
function* endless(piece: Buffer | string): Generator<Buffer> {
  const bytes = Buffer.from(piece);
  const many = Buffer.concat(Array.from({ length: Math.ceil(65_536 / bytes.length) }, () => bytes));
  for (;;) yield many;
}

function* following(...parts: readonly (Buffer | string | Iterable<Buffer>)[]): Generator<Buffer> {
  for (const part of parts) {
    if (typeof part === 'string' || Buffer.isBuffer(part)) yield Buffer.from(part);
    else yield* part;
  }
}

/** Returns a list of Services in protobuf whose stated length is 2 GiB. */
function protobufList(...parts: readonly (Buffer | Iterable<Buffer>)[]): Generator<Buffer> {
  const meta = message([1, message([2, '9'])]);
  return following(head(PROTOBUF_TYPE), envelopeStart('v1', 'ServiceList', 2 ** 31 - 1), meta, ...parts);
}

function statusOf(code: string, messageBytes: number): Generator<Buffer> {
  const body = { kind: 'Status', apiVersion: 'v1', code: Number(code.slice(0, 3)), reason: 'Forbidden' };
  const text = JSON.stringify({ ...body, message: 'Bearer '.repeat(messageBytes / 7) });
  return following(head(JSON_TYPE, [`content-length: ${text.length}`], code), text);
}

const BAD_PROTOBUF_SERVICE = message([
  2,
  message([1, message([1, 's'], [3, 'default'])], [2, message([3, 'bad'], [18, 'bad'], [18, 'worse'])]),
]);

const GZIP_HEADERS = ['content-encoding: gzip', 'connection: close'];
const GZIP_OF_A_LIST = gzipSync(serviceList([]));

function gzipped(...parts: readonly (Buffer | Iterable<Buffer>)[]): Generator<Buffer> {
  return following(head(PROTOBUF_TYPE, GZIP_HEADERS), ...parts);
}

/** Returns an endless gzip stream: the start, then the block again and again. */
function endlessGzip(start: Buffer, block: Buffer): Generator<Buffer> {
  const deflated = (bytes: Buffer) => deflateRawSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH });
  return gzipped(gzipSync('').subarray(0, 10), deflated(start), endless(deflated(block)));
}

/** Returns a gzip stream with a wrong checksum (-8) or a wrong length (-4). */
function withGzipEnd(at: -8 | -4): Buffer {
  const bytes = Buffer.from(GZIP_OF_A_LIST);
  bytes.writeUInt32LE(1_000_000, bytes.length + at);
  return bytes;
}

export const ATTACKS: readonly Attack[] = [
  {
    name: 'a reply of 256 MiB',
    wire: () => following(head(JSON_TYPE, [`content-length: ${256 * MIB}`]), endless(' ')),
    ends: TOO_LARGE,
  },
  { name: 'a body without an end', wire: () => following(head(JSON_TYPE), endless(' ')), ends: TOO_LARGE },
  {
    name: '10 MB of [[[',
    wire: () => following(head(JSON_TYPE), '['.repeat(10 * MIB)),
    ends: TOO_LARGE,
  },
  {
    name: 'an object that is nested a million times',
    wire: () => following(head(JSON_TYPE), '{"a":'.repeat(MIB / 5)),
    ends: TOO_LARGE,
  },
  {
    name: 'an object of half a million values',
    wire: () => following(head(JSON_TYPE), `{"a":[${'{},'.repeat(500_000)}0]}`),
    ends: TOO_LARGE,
  },
  { name: 'a refusal with a message of 4 MB', wire: () => statusOf('403 Forbidden', 4 * MIB), ends: TOO_LARGE },
  { name: 'a failure with a message of 4 MB', wire: () => statusOf('500 Internal', 4 * MIB), ends: TOO_LARGE },
  {
    name: 'a refusal with a message of 1 MB',
    wire: () => statusOf('403 Forbidden', MIB),
    ends: { get: 'Forbidden', services: 'Forbidden' },
  },
  {
    name: 'Services with bad addresses without an end',
    wire: () => protobufList(endless(BAD_PROTOBUF_SERVICE)),
    ends: TOO_LARGE,
  },
  {
    name: 'Services with bad addresses without an end, in JSON',
    wire: () => following(head(JSON_TYPE), LIST_START, endless(`${JSON.stringify(BAD_SERVICE)},`)),
    ends: TOO_LARGE,
  },
  {
    name: 'a Service with 8 million ports',
    wire: () => protobufList(fieldStart(2, 16_000_000), endless(message([1, '']))),
    ends: TOO_LARGE,
  },
  {
    name: 'a Service with a quarter of a million node ports in 1 MB',
    wire: () => {
      const ports = Buffer.concat([fieldStart(2, 1_000_000), Buffer.alloc(1_000_000, message([1, message([5, 1])]))]);
      return protobufList(fieldStart(2, ports.length), ports);
    },
    ends: { get: 'MalformedReply', services: 'ReplyTooLarge' },
  },
  {
    name: 'a Service with a thousand cluster IPs',
    wire: () =>
      protobufList(message([2, message([2, message(...Array.from({ length: 1_000 }, () => [18, 'bad'] as const))])])),
    ends: { get: 'MalformedReply', services: 'ReplyTooLarge' },
  },
  {
    name: 'a Service with a cluster IP of 1 MB',
    wire: () => protobufList(message([2, message([2, message([18, 'x'.repeat(MIB)])])])),
    ends: { get: 'MalformedReply', services: 'ReplyTooLarge' },
  },
  {
    name: 'a list that breaks off between two Services',
    wire: () => protobufList(BAD_PROTOBUF_SERVICE),
    ends: MALFORMED,
  },
  {
    name: 'a reply that is shorter than its content-length',
    wire: () => following(head(JSON_TYPE, ['content-length: 100000']), LIST_START),
    ends: UNAVAILABLE,
  },
  {
    name: 'a reply that is longer than its content-length',
    wire: () => following(head(JSON_TYPE, ['content-length: 20']), LIST_START),
    ends: MALFORMED,
  },
  {
    name: 'a chunk that is longer than its stated length',
    wire: () => following(head(JSON_TYPE, ['transfer-encoding: chunked']), '5\r\n', LIST_START),
    ends: UNAVAILABLE,
  },
  {
    name: 'a gzip bomb',
    wire: () =>
      following(
        head(JSON_TYPE, ['content-encoding: gzip', 'connection: close']),
        gzipSync(Buffer.alloc(8 * MIB, 0x20)),
      ),
    ends: MALFORMED,
  },
  {
    name: 'a list of Services in gzip that expands without an end',
    wire: () =>
      endlessGzip(
        Buffer.concat([envelopeStart('v1', 'ServiceList', 2 ** 31 - 1), message([1, message([2, '9'])])]),
        Buffer.concat(Array.from({ length: 1_000 }, () => BAD_PROTOBUF_SERVICE)),
      ),
    ends: TOO_LARGE,
  },
  {
    name: 'gzip without an end and without content',
    wire: () => endlessGzip(Buffer.alloc(0), Buffer.alloc(0)),
    ends: TOO_LARGE,
  },
  {
    name: 'gzip of a file name without an end',
    wire: () => gzipped(Buffer.from('1f8b0808000000000003', 'hex'), endless('x')),
    ends: TOO_LARGE,
  },
  { name: 'gzip that is cut off', wire: () => gzipped(GZIP_OF_A_LIST.subarray(0, -1)), ends: MALFORMED },
  { name: 'gzip with a wrong checksum', wire: () => gzipped(withGzipEnd(-8)), ends: MALFORMED },
  { name: 'gzip with a wrong length', wire: () => gzipped(withGzipEnd(-4)), ends: MALFORMED },
  { name: 'gzip with trailing data', wire: () => gzipped(GZIP_OF_A_LIST, Buffer.alloc(1)), ends: MALFORMED },
  { name: 'two gzip streams', wire: () => gzipped(GZIP_OF_A_LIST, GZIP_OF_A_LIST), ends: MALFORMED },
  {
    name: 'an uncompressed list with the content-encoding gzip',
    wire: () => gzipped(serviceList([])),
    ends: MALFORMED,
  },
  {
    name: 'headers without an end',
    wire: () => following('HTTP/1.1 200 OK\r\n', endless(`x-more: ${'x'.repeat(100)}\r\n`)),
    ends: UNAVAILABLE,
  },
  {
    name: 'a flood of interim replies',
    // This reply ends, so that the test also detects a call that ignores interim replies until the end.
    wire: () => following('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(30_000)),
    ends: TOO_LARGE,
  },
  {
    name: 'a switch to another protocol',
    wire: () => [head(JSON_TYPE, ['upgrade: h2c', 'connection: upgrade'], '101 Switching Protocols')],
    ends: UNAVAILABLE,
  },
  {
    name: 'a body that arrives one byte every 5 ms',
    wire: () => following(head(JSON_TYPE), ...Array.from(LIST_START.padEnd(100_000))),
    everyMs: 5,
    ends: UNAVAILABLE,
  },
  {
    name: 'a body without an end in chunks of one byte',
    wire: () => following(head(JSON_TYPE, ['transfer-encoding: chunked']), endless('1\r\n \r\n')),
    ends: TOO_LARGE,
  },
  {
    name: 'a TLS handshake that arrives one byte every 5 ms',
    wire: () => following('\x16\x03\x03\x40\x00', ...Array.from('\0'.repeat(100_000))),
    everyMs: 5,
    tls: true,
    ends: UNAVAILABLE,
  },
  {
    name: 'headers that stop after one byte',
    wire: () => [Buffer.from('H'), Buffer.from('T')],
    everyMs: 3_600_000,
    ends: UNAVAILABLE,
  },
];
