import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeAuthority } from '../../local/stand-in/identity.ts';

/** The issuer of an AWS account on loopback: OIDC discovery, public keys, and tokens as AWS STS signs them. */
export interface TokenIssuer {
  readonly url: string;
  /** PEM, of the issuer's own certificate authority. */
  readonly ca: string;
  /** For files of the test. */
  readonly folder: string;
  /** Returns a token of these claims. */
  sign(claims: TokenClaims): string;
  close(): Promise<void>;
}

export interface TokenClaims {
  readonly sub: string;
  readonly aud: string;
  /** Seconds since 1970. */
  readonly exp: number;
}

const LIFE_SECONDS = 300;

export async function startTokenIssuer(): Promise<TokenIssuer> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const { ca, issue } = makeAuthority('token issuer');
  const kid = randomUUID();
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'ES384' };
  let url = '';
  const server = createServer(issue(['127.0.0.1']), (request, response) => {
    const isDiscovery = request.url === '/.well-known/openid-configuration';
    const discovery = {
      issuer: url,
      jwks_uri: `${url}/keys`,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES384'],
    };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(isDiscovery ? discovery : { keys: [jwk] }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const folder = mkdtempSync(join(tmpdir(), 'kube-bootstrap-controller-issuer-'));
  return {
    url,
    ca,
    folder,
    sign: (claims) => {
      const all = { iss: url, iat: claims.exp - LIFE_SECONDS, jti: randomUUID(), ...claims };
      const text = [{ alg: 'ES384', kid, typ: 'JWT' }, all].map(encoded).join('.');
      const signature = sign('sha384', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' });
      return `${text}.${signature.toString('base64url')}`;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function encoded(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
