import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { startFaultServer } from '../support/api-fault-server.ts';

export type TokenIssuer = Awaited<ReturnType<typeof startTokenIssuer>>;

export interface TokenClaims {
  readonly sub: string;
  readonly aud: string;
  /** The expiry in seconds since 1970. */
  readonly exp: number;
}

const LIFE_SECONDS = 300;

/** Starts a token issuer as an AWS account has it, with OIDC discovery, public keys and tokens like those of AWS STS. */
export async function startTokenIssuer() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const { ca, issue } = makeAuthority('token issuer');
  const kid = randomUUID();
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'ES384' };
  const discovery = (issuer: string) => ({
    issuer,
    jwks_uri: `${issuer}/keys`,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES384'],
  });
  const { url, stop } = await startFaultServer(
    ({ path, headers }) => ({
      body: path === '/.well-known/openid-configuration' ? discovery(`https://${headers['host']}`) : { keys: [jwk] },
    }),
    issue(['127.0.0.1']),
  );
  return {
    url,
    /** The certificate of the issuer's own CA, as PEM. */
    ca,
    sign: (claims: TokenClaims) => {
      const all = { iss: url, iat: claims.exp - LIFE_SECONDS, jti: randomUUID(), ...claims };
      const text = [{ alg: 'ES384', kid, typ: 'JWT' }, all].map(encoded).join('.');
      const signature = sign('sha384', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' });
      return `${text}.${signature.toString('base64url')}`;
    },
    close: stop,
  };
}

function encoded(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
