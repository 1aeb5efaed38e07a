import type { WebIdentity } from '../cluster/cluster-spec.ts';
import { type ApiServerAccess, type KubeconfigOptions, parseKubeconfig } from './kubeconfig.ts';

/** How long a requested token is valid. */
export const TOKEN_SECONDS = 300;
const VALID_MS = TOKEN_SECONDS * 1000;
/** A fifth of its life is left for the requests that carry it, and for the clocks of API servers. */
const RENEW_AFTER_MS = 0.8 * VALID_MS;

/**
 * Reaches an API server with tokens that are requested when they are needed and kept in memory alone.
 * @param requestToken requests a token for {@link TOKEN_SECONDS}
 * @throws ClusterError what `requestToken` throws, or `BadKubeconfig` for a server or CA that cannot be used
 */
export async function webIdentityAccess(
  { server, certificateAuthorityData }: WebIdentity,
  requestToken: () => Promise<string>,
  options: Pick<KubeconfigOptions, 'refuseLocal'>,
): Promise<ApiServerAccess> {
  const token = renewedToken(requestToken, Date.now);
  const name = 'webIdentity';
  const kubeconfig = {
    clusters: [{ name, cluster: { server, 'certificate-authority-data': certificateAuthorityData } }],
    users: [{ name, user: { token: await token() } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  };
  const access = await parseKubeconfig(JSON.stringify(kubeconfig), 'from webIdentity in the cluster spec', options);
  const authHeaders = async () => ({ Authorization: `Bearer ${await token()}` });
  return { ...access, authHeaders, renewsItself: true };
}

/**
 * Returns a function that returns a valid token. Requests at the same time share one call. When a renewal fails, the old
 * token is used until its end.
 */
export function renewedToken(requestToken: () => Promise<string>, nowMs: () => number): () => Promise<string> {
  let current: { readonly token: string; readonly requestedAtMs: number } | undefined;
  let renewal: Promise<string> | undefined;
  const renew = async () => {
    const requestedAtMs = nowMs();
    try {
      const token = await requestToken();
      current = { token, requestedAtMs };
      return token;
    } catch (error) {
      if (current !== undefined && nowMs() - current.requestedAtMs < VALID_MS) return current.token;
      throw error;
    } finally {
      renewal = undefined;
    }
  };
  return async () => {
    if (current !== undefined && nowMs() - current.requestedAtMs < RENEW_AFTER_MS) return current.token;
    renewal ??= renew();
    return renewal;
  };
}
