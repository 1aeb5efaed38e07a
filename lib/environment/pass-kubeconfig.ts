import { ClusterError, type Prober } from '../kubernetes/cluster-port.ts';
import type { ApiServerAccess } from '../kubernetes/kubeconfig.ts';
import { networkFaultOf } from '../kubernetes/network-fault.ts';
import type { OpenReply, Transport } from '../kubernetes/transport.ts';

/**
 * The kubeconfig of one pass. If a server refuses it, or shows a certificate that it does not trust, a newer one may
 * exist.
 */
export interface PassKubeconfig {
  /** The last one that was read. */
  readonly current: () => ApiServerAccess;
  /**
   * Returns the kubeconfig that was read after `used`, perhaps only now. `undefined`: `used` was read in this pass, or within
   * the last minute.
   */
  readonly newerThan: (used: ApiServerAccess) => Promise<ApiServerAccess | undefined>;
  /** Discards the kubeconfig, so that the next pass reads it again if the last read is old enough. */
  readonly forget: () => void;
  /**
   * Whether a failed verification of this URL counts: the kubeconfig was read after the URL began to fail. It is
   * remembered with the kubeconfig.
   */
  readonly isProvenAgainst: (url: string) => boolean;
}

/**
 * Returns a transport that repeats a request with a newer kubeconfig after a 401 or a failed certificate verification.
 * The repetition is safe, because the API server did not execute the first request.
 */
export function renewingTransport(
  kubeconfig: PassKubeconfig,
  transportOf: (access: ApiServerAccess) => Transport,
): Transport {
  return async (request, signal) => {
    const used = kubeconfig.current();
    try {
      const reply = await transportOf(used)(request, signal);
      if (reply.status !== 401) return reply;
      const newer = await kubeconfig.newerThan(used).catch(refusedAndUnread);
      const again = newer === undefined ? reply : await inPlaceOf(reply, () => transportOf(newer)(request, signal));
      if (again.status === 401) kubeconfig.forget();
      return again;
    } catch (error) {
      const newer =
        networkFaultOf(error) === 'tls' ? await kubeconfig.newerThan(used).catch(() => undefined) : undefined;
      if (newer !== undefined) return retried(kubeconfig, () => transportOf(newer)(request, signal));
      kubeconfig.forget();
      throw error;
    }
  };
}

/** A body that is not read would keep its connection from other requests. */
async function inPlaceOf({ body }: OpenReply, work: () => Promise<OpenReply>): Promise<OpenReply> {
  for await (const piece of body) if (piece.length > 0) break;
  return work();
}

async function retried(kubeconfig: PassKubeconfig, work: () => Promise<OpenReply>): Promise<OpenReply> {
  try {
    return await work();
  } catch (error) {
    kubeconfig.forget();
    throw error;
  }
}

function refusedAndUnread(error: unknown): never {
  if (!(error instanceof ClusterError)) throw error;
  const message = `The API server refused the credential, and the kubeconfig cannot be read again: ${error.message}`;
  throw new ClusterError(error.code, message, { cause: error });
}

/**
 * Probes again with the kubeconfig that was read after a failed verification or a 401. A failed verification counts only
 * if the kubeconfig was read after the server began to fail: until then nothing is known of the server.
 */
export function renewingProber(kubeconfig: PassKubeconfig, proberOf: (access: ApiServerAccess) => Prober): Prober {
  return async (target, signal) => {
    const used = kubeconfig.current();
    const reply = await proberOf(used)(target, signal);
    const isRefused = reply.kind === 'status' && reply.status === 401 && target.authenticate !== false;
    if (reply.kind !== 'tlsFailure' && !isRefused) return reply;
    const newer = await kubeconfig.newerThan(used).catch(() => undefined);
    const last = newer === undefined ? reply : await proberOf(newer)(target, signal);
    if (last.kind !== 'tlsFailure' || kubeconfig.isProvenAgainst(target.url)) return last;
    const message = `TLS failed (${last.message}), which counts once the kubeconfig has been read again`;
    return { kind: 'unknown', message };
  };
}
