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
const BAD_SPEC = { clusterIP: 'bad', clusterIPs: ['bad', 'worse'] };
const BAD_SERVICE = { metadata: { name: 's', namespace: 'default' }, spec: BAD_SPEC };
const TOO_LARGE = { get: 'ReplyTooLarge', services: 'ReplyTooLarge' };
const MALFORMED = { get: 'MalformedReply', services: 'MalformedReply' };
const UNAVAILABLE = { get: 'Unavailable', services: 'Unavailable' };
const FORBIDDEN = { get: 'Forbidden', services: 'Forbidden' };
const SLOWLY = { everyMs: 5 };

function head(type: string, more: readonly string[] = ['connection: close'], status = '200 OK'): Buffer {
  return Buffer.from([`HTTP/1.1 ${status}`, `content-type: ${type}`, ...more, '', ''].join('\r\n'));
}

/** Repeats the piece endlessly, in blocks of about 64 KiB. */
function* endless(piece: Buffer | string): Generator<Buffer> {
  const bytes = Buffer.from(piece);
  const many = Buffer.concat(Array.from({ length: Math.ceil(65_536 / bytes.length) }, () => bytes));
  for (;;) yield many;
}

type Part = Buffer | string | Iterable<Buffer>;

function* following(...parts: readonly Part[]): Generator<Buffer> {
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

type Wire = Attack['wire'];

const attack = (name: string, ends: Attack['ends'], wire: Wire, more: Partial<Attack> = {}): Attack => {
  return { name, ends, wire, ...more };
};
const inJson = (...parts: readonly Part[]) => following(head(JSON_TYPE), ...parts);
const inJsonWith = (header: string, ...parts: readonly Part[]) => following(head(JSON_TYPE, [header]), ...parts);
/** The end of a Service that is too large, which a call for one object does not expect. */
const TOO_LARGE_IN_LIST = { get: 'MalformedReply', services: 'ReplyTooLarge' };
const oneService = (spec: Buffer) => protobufList(message([2, message([2, spec])]));

function manyNodePorts(): Iterable<Buffer> {
  const ports = Buffer.concat([fieldStart(2, 1_000_000), Buffer.alloc(1_000_000, message([1, message([5, 1])]))]);
  return protobufList(fieldStart(2, ports.length), ports);
}

function endlessServicesInGzip(): Iterable<Buffer> {
  const start = [envelopeStart('v1', 'ServiceList', 2 ** 31 - 1), message([1, message([2, '9'])])];
  return endlessGzip(Buffer.concat(start), Buffer.concat(Array.from({ length: 1_000 }, () => BAD_PROTOBUF_SERVICE)));
}

const slowHandshake = () => following('\x16\x03\x03\x40\x00', ...'\0'.repeat(100_000));

export const ATTACKS: readonly Attack[] = [
  attack('a reply of 256 MiB', TOO_LARGE, () => inJsonWith(`content-length: ${256 * MIB}`, endless(' '))),
  attack('a body without an end', TOO_LARGE, () => inJson(endless(' '))),
  attack('10 MB of [[[', TOO_LARGE, () => inJson('['.repeat(10 * MIB))),
  attack('an object that is nested a million times', TOO_LARGE, () => inJson('{"a":'.repeat(MIB / 5))),
  attack('an object of half a million values', TOO_LARGE, () => inJson(`{"a":[${'{},'.repeat(500_000)}0]}`)),
  attack('a refusal with a message of 4 MB', TOO_LARGE, () => statusOf('403 Forbidden', 4 * MIB)),
  attack('a failure with a message of 4 MB', TOO_LARGE, () => statusOf('500 Internal', 4 * MIB)),
  attack('a refusal with a message of 1 MB', FORBIDDEN, () => statusOf('403 Forbidden', MIB)),
  attack('Services with bad addresses without an end', TOO_LARGE, () => protobufList(endless(BAD_PROTOBUF_SERVICE))),
  attack('Services with bad addresses without an end, in JSON', TOO_LARGE, () =>
    inJson(LIST_START, endless(`${JSON.stringify(BAD_SERVICE)},`)),
  ),
  attack('a Service with 8 million ports', TOO_LARGE, () =>
    protobufList(fieldStart(2, 16_000_000), endless(message([1, '']))),
  ),
  attack('a Service with a quarter of a million node ports in 1 MB', TOO_LARGE_IN_LIST, manyNodePorts),
  attack('a Service with a thousand cluster IPs', TOO_LARGE_IN_LIST, () =>
    oneService(message(...Array.from({ length: 1_000 }, () => [18, 'bad'] as const))),
  ),
  attack('a Service with a cluster IP of 1 MB', TOO_LARGE_IN_LIST, () => oneService(message([18, 'x'.repeat(MIB)]))),
  attack('a list that breaks off between two Services', MALFORMED, () => protobufList(BAD_PROTOBUF_SERVICE)),
  attack('a reply that is shorter than its content-length', UNAVAILABLE, () =>
    inJsonWith('content-length: 100000', LIST_START),
  ),
  attack('a reply that is longer than its content-length', MALFORMED, () =>
    inJsonWith('content-length: 20', LIST_START),
  ),
  attack('a chunk that is longer than its stated length', UNAVAILABLE, () =>
    inJsonWith('transfer-encoding: chunked', '5\r\n', LIST_START),
  ),
  attack('a gzip bomb', MALFORMED, () =>
    following(head(JSON_TYPE, GZIP_HEADERS), gzipSync(Buffer.alloc(8 * MIB, 0x20))),
  ),
  attack('a list of Services in gzip that expands without an end', TOO_LARGE, endlessServicesInGzip),
  attack('gzip without an end and without content', TOO_LARGE, () => endlessGzip(Buffer.alloc(0), Buffer.alloc(0))),
  attack('gzip of a file name without an end', TOO_LARGE, () =>
    gzipped(Buffer.from('1f8b0808000000000003', 'hex'), endless('x')),
  ),
  attack('gzip that is cut off', MALFORMED, () => gzipped(GZIP_OF_A_LIST.subarray(0, -1))),
  attack('gzip with a wrong checksum', MALFORMED, () => gzipped(withGzipEnd(-8))),
  attack('gzip with a wrong length', MALFORMED, () => gzipped(withGzipEnd(-4))),
  attack('gzip with trailing data', MALFORMED, () => gzipped(GZIP_OF_A_LIST, Buffer.alloc(1))),
  attack('two gzip streams', MALFORMED, () => gzipped(GZIP_OF_A_LIST, GZIP_OF_A_LIST)),
  attack('an uncompressed list with the content-encoding gzip', MALFORMED, () => gzipped(serviceList([]))),
  attack('headers without an end', UNAVAILABLE, () =>
    following('HTTP/1.1 200 OK\r\n', endless(`x-more: ${'x'.repeat(100)}\r\n`)),
  ),
  // This reply ends, so that the test also detects a call that ignores interim replies until the end.
  attack('a flood of interim replies', TOO_LARGE, () => following('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(30_000))),
  attack('a switch to another protocol', UNAVAILABLE, () => [
    head(JSON_TYPE, ['upgrade: h2c', 'connection: upgrade'], '101 Switching Protocols'),
  ]),
  attack('a body that arrives one byte every 5 ms', UNAVAILABLE, () => inJson(...LIST_START.padEnd(100_000)), SLOWLY),
  attack('a body without an end in chunks of one byte', TOO_LARGE, () =>
    inJsonWith('transfer-encoding: chunked', endless('1\r\n \r\n')),
  ),
  attack('a TLS handshake that arrives one byte every 5 ms', UNAVAILABLE, slowHandshake, { ...SLOWLY, tls: true }),
  attack('headers that stop after one byte', UNAVAILABLE, () => following('H', 'T'), { everyMs: 3_600_000 }),
];
