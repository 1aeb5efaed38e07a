// Answers DNS queries for two names, because functions do not read /etc/hosts for a name with a dot. in-namespace.sh starts it.
import { createSocket } from 'node:dgram';

const ADDRESSES: Readonly<Record<string, readonly number[]>> = {
  // The certificate of each API server contains this name.
  'kubernetes.default.svc': [10, 9, 8, 7],
  'metadata.example.com': [169, 254, 169, 254],
};
const A_RECORD = 1;
const NO_SUCH_NAME = 3;

/** Returns the reply to a query with one question (RFC 1035). */
function replyTo(query: Buffer): Buffer {
  const end = query.indexOf(0, 12);
  const labels: string[] = [];
  for (let at = 12; at < end; at += 1 + query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + query.readUInt8(at)));
  }
  const address = ADDRESSES[labels.join('.')];
  const answers = address !== undefined && query.readUInt16BE(end + 1) === A_RECORD ? 1 : 0;
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  header.writeUInt16BE(0x8180 | (address === undefined ? NO_SUCH_NAME : 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(answers, 6);
  // The name is a pointer to that of the question. The record is valid for 0 seconds.
  const record = Buffer.from([0xc0, 12, 0, A_RECORD, 0, 1, 0, 0, 0, 0, 0, 4, ...(address ?? [])]);
  return Buffer.concat([header, query.subarray(12, end + 5), ...(answers === 1 ? [record] : [])]);
}

const socket = createSocket('udp4', (query, { address, port }) => socket.send(replyTo(query), port, address));
socket.bind(53, '127.0.0.1');
