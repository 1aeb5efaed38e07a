import { generateKeyPairSync, hash, type KeyObject, sign } from 'node:crypto';

export type Identity = ReturnType<typeof newIdentity>;

/** Returns the key that callers send, and the API servers' certificate with the certificate of its authority (PEM). */
export function newIdentity(key: string) {
  const { ca, issue } = makeAuthority('kbctl run');
  return { key, ca, certified: issue(['127.0.0.1']) };
}

/** Returns a kubeconfig for kubectl, kbctl and the loops. */
export function kubeconfigOf(name: string, server: string, { key, ca }: Pick<Identity, 'key' | 'ca'>): string {
  const cluster = { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') };
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster }],
    users: [{ name, user: { token: key } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  };
  return `${JSON.stringify(kubeconfig, undefined, 2)}\n`;
}

export interface CertifiedKey {
  readonly cert: string;
  readonly key: string;
}

/** Creates a certificate authority for one run. Its key is only in memory. */
export function makeAuthority(commonName: string) {
  const own = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const issuer = { name: distinguishedName(commonName), key: own.privateKey };
  const isCa = extension('551d13', true, sequence(der(0x01, Buffer.of(0xff))));
  return {
    ca: certificate({ ...issuer, key: own.publicKey }, issuer, isCa),
    /** Issues a server certificate for IPv4 addresses and DNS names, valid from 2020 until `untilYear`. */
    issue: (names: readonly string[], untilYear?: number): CertifiedKey => {
      const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const subject = { name: distinguishedName(names[0] ?? 'unnamed'), key: keys.publicKey };
      const altNames = extension('551d11', false, sequence(...names.map(generalName)));
      const key = keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
      return { cert: certificate(subject, issuer, altNames, untilYear), key };
    },
  };
}

interface Party {
  readonly name: Buffer;
  /** The public key of a subject, or the private key of an issuer. */
  readonly key: KeyObject;
}

/** Returns an X.509 certificate of version 3 (RFC 5280) as PEM, signed with ECDSA and SHA-256. */
function certificate(subject: Party, issuer: Party, extended: Buffer, untilYear = 2120): string {
  const spki = subject.key.export({ type: 'spki', format: 'der' });
  const algorithm = sequence(der(0x06, Buffer.from('2a8648ce3d040302', 'hex')));
  const serial = hash('sha256', spki, 'buffer').subarray(0, 8);
  serial[0] = 1;
  const validity = sequence(der(0x17, Buffer.from('200101000000Z')), der(0x18, Buffer.from(`${untilYear}0101000000Z`)));
  const body = sequence(
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, serial),
    algorithm,
    issuer.name,
    validity,
    subject.name,
    spki,
    der(0xa3, sequence(extended)),
  );
  const signature = der(0x03, Buffer.concat([Buffer.of(0), sign('sha256', body, issuer.key)]));
  const lines = sequence(body, algorithm, signature)
    .toString('base64')
    .match(/.{1,64}/g);
  return `-----BEGIN CERTIFICATE-----\n${lines?.join('\n')}\n-----END CERTIFICATE-----\n`;
}

function distinguishedName(commonName: string): Buffer {
  const attribute = sequence(der(0x06, Buffer.from('550403', 'hex')), der(0x0c, Buffer.from(commonName)));
  return sequence(der(0x31, attribute));
}

function extension(oid: string, critical: boolean, value: Buffer): Buffer {
  const flag = critical ? [der(0x01, Buffer.of(0xff))] : [];
  return sequence(der(0x06, Buffer.from(oid, 'hex')), ...flag, der(0x04, value));
}

function generalName(name: string): Buffer {
  const octets = name.split('.').map(Number);
  const isAddress = octets.length === 4 && octets.every((octet) => octet >= 0 && octet <= 255);
  return isAddress ? der(0x87, Buffer.from(octets)) : der(0x82, Buffer.from(name));
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const longer = length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  const header = length < 128 ? [tag, length] : [tag, ...longer];
  return Buffer.concat([Buffer.from(header), content]);
}
