import { X509Certificate } from 'node:crypto';
import { isRecord } from '../cluster/values.ts';
import type { ApiServerAccess } from './kubeconfig.ts';

/** When a credential ends. The credential itself is never part of it. */
export interface CredentialEnd {
  readonly what: 'token' | 'client certificate';
  readonly endsMs: number;
  readonly beganMs?: number;
}

const SOON_MS = 7 * 24 * 60 * 60_000;

/** Opaque tokens have no known end; the end of a credential that renews itself does not matter. */
export async function credentialEnds(access: ApiServerAccess): Promise<readonly CredentialEnd[]> {
  if (access.renewsItself) return [];
  const headers = await access.authHeaders();
  const { cert } = access.tls();
  return [tokenEnd(headers['Authorization'] ?? ''), cert === undefined ? undefined : certificateEnd(cert)].filter(
    (end) => end !== undefined,
  );
}

/** Returns true in the last third of the credential's life, or in its last week if its start is unknown. */
export function endsSoon({ endsMs, beganMs }: CredentialEnd, nowMs: number): boolean {
  const soonMs = beganMs === undefined ? SOON_MS : (endsMs - beganMs) / 3;
  return endsMs - nowMs <= soonMs;
}

function tokenEnd(authorization: string): CredentialEnd | undefined {
  const [, payload] = /^Bearer [\w-]+\.([\w-]+)\.[\w-]*$/.exec(authorization) ?? [];
  const claims = payload === undefined ? undefined : claimsIn(payload);
  if (typeof claims?.['exp'] !== 'number') return undefined;
  const began = claims['iat'];
  return {
    what: 'token',
    endsMs: claims['exp'] * 1000,
    ...(typeof began === 'number' && { beganMs: began * 1000 }),
  };
}

function claimsIn(payload: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString());
    return isRecord(claims) ? claims : undefined;
  } catch {
    return undefined;
  }
}

function certificateEnd(cert: string | Buffer): CredentialEnd {
  const { validFromDate, validToDate } = new X509Certificate(cert);
  return { what: 'client certificate', endsMs: validToDate.getTime(), beganMs: validFromDate.getTime() };
}
