import { constants, createCipheriv, createDecipheriv, createHmac } from 'node:crypto';
import { connect, createServer as createTcpServer } from 'node:net';
import { createServer } from 'node:tls';
import { expect, test } from '@jest/globals';
import { systemNamespaces } from '../../lib/loops/system-namespaces.ts';
import { type CertifiedKey, makeAuthority } from '../../local/stand-in/identity.ts';
import { aProcess } from '../support/a-process.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { PassWorld } from '../support/pass-world.ts';
import { portOf } from '../support/serve.ts';
import { accessTo, textOf, transportWith } from '../support/transport-to.ts';

/** Messages of TLS 1.3, with their type and length. */
const SESSION_TICKET = Buffer.from('0400000f0000003c0000000001000001000000', 'hex');
const KEY_UPDATE = Buffer.from('1800000100', 'hex');
const HEADER_BYTES = 5;
const TAG_BYTES = 16;
const HANDSHAKE = 22;
const APPLICATION_DATA = 23;

/** Encrypts and decrypts the records of a server of TLS 1.3 with AES-128 and SHA-256 (RFC 8446, 5.2 and 7.3). */
class ServerRecords {
  #secret: Buffer;
  #sequence = 0;

  constructor(secret: Buffer) {
    this.#secret = secret;
  }

  /** Returns the record with this message. After a key update, the next record has other keys. */
  encrypted(type: number, message: Buffer): Buffer {
    const header = Buffer.from([APPLICATION_DATA, 3, 3, 0, message.length + 1 + TAG_BYTES]);
    const cipher = createCipheriv('aes-128-gcm', this.#expand('key', 16), this.#nonce()).setAAD(header);
    const content = cipher.update(Buffer.concat([message, Buffer.from([type])]));
    const record = Buffer.concat([header, content, cipher.final(), cipher.getAuthTag()]);
    this.#sequence += 1;
    if (message.equals(KEY_UPDATE)) {
      this.#secret = this.#expand('traffic upd', 32);
      this.#sequence = 0;
    }
    return record;
  }

  /** Returns the type of the message in the next record; `undefined` for a record of the handshake, which has other keys. */
  typeOf(record: Buffer): number | undefined {
    const decipher = createDecipheriv('aes-128-gcm', this.#expand('key', 16), this.#nonce())
      .setAAD(record.subarray(0, HEADER_BYTES))
      .setAuthTag(record.subarray(-TAG_BYTES));
    const content = decipher.update(record.subarray(HEADER_BYTES, -TAG_BYTES));
    try {
      decipher.final();
    } catch {
      return undefined;
    }
    this.#sequence += 1;
    return content.at(-1);
  }

  #nonce(): Buffer {
    const nonce = this.#expand('iv', 12);
    nonce[11] = (nonce[11] ?? 0) ^ this.#sequence;
    return nonce;
  }

  #expand(label: string, length: number): Buffer {
    const name = `tls13 ${label}`;
    const info = Buffer.from([0, length, name.length, ...Buffer.from(name), 0, 1]);
    return createHmac('sha256', this.#secret).update(info).digest().subarray(0, length);
  }
}

/**
 * Starts a server that sends these messages within its reply. A server of Node cannot send them, so that the records of this server
 * pass a relay, which then encrypts further ones itself. Returns the port.
 */
async function portOfServerSending(messages: readonly Buffer[], identity: CertifiedKey): Promise<number> {
  let records: ServerRecords | undefined;
  const settings = { ciphers: 'TLS_AES_128_GCM_SHA256', minVersion: 'TLSv1.3' } as const;
  const server = createServer({ ...identity, ...settings }, (socket) => {
    socket.on('error', () => undefined).once('data', () => socket.write('HTTP/1.1 200 OK\r\n'));
  });
  server.on('keylog', (line) => {
    const [label, , secret = ''] = line.toString().trim().split(' ');
    if (label === 'SERVER_TRAFFIC_SECRET_0') records = new ServerRecords(Buffer.from(secret, 'hex'));
  });
  const port = await portOf(server);
  const relay = createTcpServer((client) => {
    const upstream = connect(port, '127.0.0.1').on('error', () => undefined);
    client.on('error', () => undefined).pipe(upstream);
    let rest = Buffer.alloc(0);
    upstream.on('data', (chunk) => {
      client.write(chunk);
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= HEADER_BYTES && rest.length >= HEADER_BYTES + rest.readUInt16BE(3)) {
        const record = rest.subarray(0, HEADER_BYTES + rest.readUInt16BE(3));
        rest = rest.subarray(record.length);
        if (record[0] !== APPLICATION_DATA || records?.typeOf(record) !== APPLICATION_DATA) continue;
        for (const message of messages) client.write(records.encrypted(HANDSHAKE, message));
        client.write(records.encrypted(APPLICATION_DATA, Buffer.from('content-length: 0\r\n\r\n')));
      }
    });
  });
  afterThisTest(() => {
    relay.close();
    server.close();
  });
  return portOf(relay);
}

const authority = makeAuthority('the attacker');
const EMPTY_REPLY = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

/** Sends a request and returns the status. Keeps the connection until `end`. */
async function statusOf(port: number, end?: Promise<unknown>): Promise<number> {
  const transport = transportWith(await accessTo(`https://127.0.0.1:${port}`, authority));
  const { status, body } = await transport({ method: 'GET', path: '/', headers: {} }, new AbortController().signal);
  await textOf(body);
  await end;
  return status;
}

function serverWithChainOf(certificates: number) {
  const { key, cert } = authority.issue(['127.0.0.1']);
  const server = createServer({ key, cert: cert.repeat(certificates) }, (socket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => socket.end(EMPTY_REPLY));
  });
  afterThisTest(() => server.close());
  return server.on('tlsClientError', () => undefined);
}

test('the handshake ends before a certificate chain of more than 100 KB is verified', async () => {
  await expect(statusOf(await portOf(serverWithChainOf(10)))).resolves.toBe(200);
  await expect(statusOf(await portOf(serverWithChainOf(1_000)))).rejects.toThrow(/excessive message size/i);
});

test('an untrusted certificate chain is verified once per probe, and at most four times for all calls of a pass', async () => {
  const server = serverWithChainOf(10);
  let handshakes = 0;
  server.on('connection', () => {
    handshakes += 1;
  });
  const url = `https://127.0.0.1:${await portOf(server)}`;
  const { ca } = makeAuthority('another');
  const access = await aProcess(() => accessTo(url, { ca })).connect();
  expect(await access.probe({ url, authenticate: false })).toMatchObject({ kind: 'tlsFailure' });
  expect(handshakes).toBe(1);
  const names = Array.from({ length: 20 }, (_, index) => `system-${index}`);
  const { kubernetes } = access;
  const { errors } = await new PassWorld({ systemNamespaces: names }).pass(systemNamespaces, { kubernetes });
  expect(errors).toEqual(names.map(() => expect.objectContaining({ code: 'TlsFailure' })));
  expect(handshakes).toBeLessThanOrEqual(1 + 4);
});

test.each([
  ['session tickets', SESSION_TICKET, 14, 'more than 16 session tickets of TLS'],
  ['key updates', KEY_UPDATE, 27, 'more than 32 secrets of TLS'],
])('a connection ends if the server sends too many %s', async (_what, message, accepted, error) => {
  const replyAfter = async (messages: number) => {
    const many = Array.from({ length: messages }, () => message);
    return statusOf(await portOfServerSending(many, authority.issue(['127.0.0.1'])));
  };
  await expect(replyAfter(accepted)).resolves.toBe(200);
  await expect(replyAfter(accepted + 1)).rejects.toMatchObject({ name: 'OverBound', message: error });
});

/** Without tickets, a server is the first to know that a handshake has succeeded. */
const FULL_HANDSHAKES = { maxVersion: 'TLSv1.2', secureOptions: constants.SSL_OP_NO_TICKET } as const;

test('a TLS 1.2 server cannot renegotiate an open connection', async () => {
  const attempt = Promise.withResolvers<'renegotiated' | 'refused'>();
  const server = createServer({ ...authority.issue(['127.0.0.1']), ...FULL_HANDSHAKES }, (socket) => {
    socket.on('error', () => attempt.resolve('refused')).on('close', () => attempt.resolve('refused'));
    socket.on('data', () => {
      socket.write(EMPTY_REPLY);
      socket.renegotiate({}, (error) => attempt.resolve(error ? 'refused' : 'renegotiated'));
    });
  });
  afterThisTest(() => server.close());
  expect(await statusOf(await portOf(server), attempt.promise)).toBe(200);
  expect(await attempt.promise).toBe('refused');
});

test('a connection ends if a TLS 1.2 server requests another handshake', async () => {
  const server = createServer({ ...authority.issue(['127.0.0.1']), maxVersion: 'TLSv1.2' }, (socket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => {
      socket.write('HTTP/1.1 200 OK\r\n');
      socket.renegotiate({}, () => undefined);
    });
  });
  afterThisTest(() => server.close());
  const error = { name: 'OverBound', message: 'more than 1 handshake of TLS' };
  await expect(statusOf(await portOf(server))).rejects.toMatchObject(error);
});
