import { X509Certificate } from 'node:crypto';
import { promisify } from 'node:util';
import type { WebIdentity } from '../spec/cluster-spec.ts';
import { hostOf, isAudienceOfSts } from '../util/hosts.ts';
import { type JsonRecord, jsonIn } from '../util/values.ts';
import { ClusterError, type ClusterErrorCode } from './cluster-port.ts';
import { type ApiServerAccess, type KubeconfigOptions, parseKubeconfig } from './kubeconfig.ts';
import { describeNetworkError } from './network-fault.ts';

export const TOKEN_SECONDS = 300;
/** A credential is renewed after four fifths of its life, because requests take time and clocks differ. */
const RENEW_AFTER = 0.8;

/**
 * Returns access to an API server with tokens. The tokens are sent only to that server. Checks the CA once, and the server before
 * each request for a token. Throws the error of `requestToken`, `BadKubeconfig` for an unusable server or CA, or `Unavailable`
 * for an unknown host.
 */
export async function webIdentityAccess(
  { server, certificateAuthorityData }: WebIdentity,
  requestToken: () => Promise<string>,
  options: Pick<KubeconfigOptions, 'refuseLocal'>,
): Promise<ApiServerAccess> {
  const name = 'webIdentity';
  const kubeconfig = {
    clusters: [{ name, cluster: { server, 'certificate-authority-data': certificateAuthorityData } }],
    users: [{ name, user: {} }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  };
  const place = 'from webIdentity in the cluster spec';
  const access = await parseKubeconfig(JSON.stringify(kubeconfig), place, options);
  const token = renewed(async () => {
    await checkServer(server, access);
    return requestToken();
  }, TOKEN_SECONDS);
  await token();
  const authHeaders = async () => ({ Authorization: `Bearer ${await token()}` });
  return { ...access, authHeaders, isIssuedForServer: true };
}

/** Throws a `ClusterError` if the server must not get a token. In Lambda, the server's name must resolve to a remote address. */
async function checkServer(server: string, { lookup }: ApiServerAccess): Promise<void> {
  const refused = (code: ClusterErrorCode, problem: string) => {
    const remedy = 'Set webIdentity.server to the https URL of an API server that the functions reach';
    return new ClusterError(code, `No token is requested for ${server}: ${problem}. ${remedy}.`);
  };
  const url = new URL(server);
  if (url.protocol !== 'https:') throw refused('BadKubeconfig', 'http would send the credential unencrypted');
  if (isAudienceOfSts(url)) throw refused('BadKubeconfig', 'AWS STS is the audience');
  if (lookup === undefined) return;
  await promisify(lookup)(hostOf(url), {}).catch((error: unknown) => {
    if (error instanceof ClusterError) throw error;
    throw refused('Unavailable', `its name does not resolve: ${describeNetworkError(error)}`);
  });
}

/**
 * Returns a source of credentials. Concurrent calls share one request. If the request fails, the old credential serves until it
 * expires.
 */
export function renewed<Credential>(
  request: () => Promise<Credential>,
  validSeconds: number,
  nowMs = Date.now,
): () => Promise<Credential> {
  let current: { readonly credential: Credential; readonly requestedAtMs: number } | undefined;
  let renewal: Promise<Credential> | undefined;
  const isWithin = (requestedAtMs: number, seconds: number) => nowMs() - requestedAtMs < seconds * 1000;
  const renew = async () => {
    const requestedAtMs = nowMs();
    try {
      const credential = await request();
      current = { credential, requestedAtMs };
      return credential;
    } catch (error) {
      if (current !== undefined && isWithin(current.requestedAtMs, validSeconds)) return current.credential;
      throw error;
    } finally {
      renewal = undefined;
    }
  };
  return async () => {
    if (current !== undefined && isWithin(current.requestedAtMs, RENEW_AFTER * validSeconds)) return current.credential;
    renewal ??= renew();
    return renewal;
  };
}

/** The expiry and, if known, the start of a credential, without the credential. */
export interface CredentialEnd {
  readonly what: 'token' | 'client certificate';
  readonly endsMs: number;
  readonly beganMs?: number;
}

const SOON_MS = 7 * 24 * 60 * 60_000;

/** Returns the expiry of the token and of the client certificate. Omits opaque tokens, and AWS STS tokens, which are renewed. */
export async function credentialEnds(access: ApiServerAccess): Promise<readonly CredentialEnd[]> {
  if (access.isIssuedForServer) return [];
  const headers = await access.authHeaders();
  const { cert } = access.tls();
  const ends = [tokenEnd(headers['Authorization'] ?? ''), cert === undefined ? undefined : certificateEnd(cert)];
  return ends.filter((end) => end !== undefined);
}

/** Returns true in the last third of the credential's life, or in its last week if its start is unknown. */
export function endsSoon({ endsMs, beganMs }: CredentialEnd, nowMs: number): boolean {
  const soonMs = beganMs === undefined ? SOON_MS : (endsMs - beganMs) / 3;
  return endsMs - nowMs <= soonMs;
}

function tokenEnd(authorization: string): CredentialEnd | undefined {
  const [, payload = ''] = /^Bearer [\w-]+\.([\w-]+)\.[\w-]*$/.exec(authorization) ?? [];
  const { exp, iat }: JsonRecord = Object(jsonIn(Buffer.from(payload, 'base64url').toString()));
  if (typeof exp !== 'number') return undefined;
  return { what: 'token', endsMs: exp * 1000, ...(typeof iat === 'number' && { beganMs: iat * 1000 }) };
}

function certificateEnd(cert: string | Buffer): CredentialEnd {
  const { validFromDate, validToDate } = new X509Certificate(cert);
  return { what: 'client certificate', endsMs: validToDate.getTime(), beganMs: validFromDate.getTime() };
}
