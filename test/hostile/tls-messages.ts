import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto';
import { connect, createServer } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterThisTest } from '../support/after-this-test.ts';
import { portOf } from '../support/serve.ts';

/** Messages of TLS 1.3, with their type and length. */
export const SESSION_TICKET = Buffer.from('0400000f0000003c0000000001000001000000', 'hex');
export const KEY_UPDATE = Buffer.from('1800000100', 'hex');
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
export async function portOfServerSending(
  messages: readonly Buffer[],
  identity: { readonly key: string; readonly cert: string },
): Promise<number> {
  let records: ServerRecords | undefined;
  const settings = { ciphers: 'TLS_AES_128_GCM_SHA256', minVersion: 'TLSv1.3' } as const;
  const server = createTlsServer({ ...identity, ...settings }, (socket) => {
    socket.on('error', () => undefined).once('data', () => socket.write('HTTP/1.1 200 OK\r\n'));
  });
  server.on('keylog', (line) => {
    const [label, , secret = ''] = line.toString().trim().split(' ');
    if (label === 'SERVER_TRAFFIC_SECRET_0') records = new ServerRecords(Buffer.from(secret, 'hex'));
  });
  const port = await portOf(server);
  const relay = createServer((client) => {
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
