import { isLocalHost } from '../cluster/local-host.ts';
import { untilAborted } from '../cluster/until-aborted.ts';
import type { ProbeReply } from '../endpoints/probe-outcome.ts';
import type { Prober, ProbeTarget } from './cluster-port.ts';
import { HttpClient } from './http-client.ts';
import type { ApiServerAccess, TlsMaterial } from './kubeconfig.ts';
import { localRefused } from './local-addresses.ts';
import { CredentialMask } from './mask-credential.ts';
import { describeNetworkError, networkFaultOf } from './network-fault.ts';
import { inLargePieces } from './reply-bounds.ts';
import type { OpenReply } from './transport.ts';

export interface HttpsProberOptions {
  readonly access: ApiServerAccess;
  /** Aborts when the pass must end. */
  readonly deadline: AbortSignal;
  readonly userAgent: string;
  /** Returns a signal that aborts after a time, the end of a probe. Default: `AbortSignal.timeout`. */
  readonly expire?: (ms: number) => AbortSignal;
  /** Starts to measure the lag of this process's event loop. Default: with a timer. */
  readonly measureLag?: () => () => number;
}

const LONGEST_PROBE_MS = 3_000;
/** With less lag, the answer of a live server arrives within the rest of the 3 s. */
const LATE_MS = 500;
/** The limit of the second probe, made as soon as the event loop is free. A pass has time for both. */
const AGAIN_MS = 1_000;
const LONGEST_BODY = 4_096;

/**
 * Probes with the kubeconfig's CA, and with its credential only if the target requests it and the certificate is
 * verified. Each probe has its own connection: a kept connection that was dropped would look like a silent server. A
 * timeout that the pass caused does not count as silence. If this process was busy meanwhile, as with the long reply of
 * another cluster, it probes once more.
 */
export function httpsProber(options: HttpsProberOptions): Prober {
  const { deadline } = options;
  return async (target, given) => {
    const end = given === undefined ? deadline : AbortSignal.any([deadline, given]);
    const reply = await probeFor(LONGEST_PROBE_MS, target, end, options);
    return reply.late ? { ...(await probeFor(AGAIN_MS, target, end, options)), late: true } : reply;
  };
}

async function probeFor(
  limitMs: number,
  target: ProbeTarget,
  end: AbortSignal,
  {
    access,
    userAgent,
    expire = (ms) => AbortSignal.timeout(ms),
    measureLag: startLag = measureLag,
  }: HttpsProberOptions,
): Promise<ProbeReply> {
  const signal = AbortSignal.any([end, expire(limitMs)]);
  const worstLag = startLag();
  try {
    return await untilAborted(signal, () => ask(target, access, userAgent, signal));
  } catch (error) {
    if (end.aborted) return { kind: 'unknown', message: 'the time for probes was over' };
    if (signal.aborted) return timedOut(limitMs, worstLag());
    return { kind: networkFaultOf(error) === 'tls' ? 'tlsFailure' : 'silence', message: describeNetworkError(error) };
  } finally {
    worstLag();
  }
}

function timedOut(limitMs: number, lagMs: number): ProbeReply {
  if (lagMs < LATE_MS) return { kind: 'silence', message: `no answer within ${limitMs} ms` };
  const message = `this process was busy for ${Math.round(lagMs)} ms while it waited for the answer`;
  return { kind: 'unknown', message, late: true };
}

async function ask(
  target: ProbeTarget,
  access: ApiServerAccess,
  userAgent: string,
  signal: AbortSignal,
): Promise<ProbeReply> {
  const url = new URL(target.url);
  if (access.lookup !== undefined && isLocalHost(url)) throw localRefused(url.host);
  const authenticated = mayAuthenticate(target, url, access) && !access.skipTlsVerify && url.protocol === 'https:';
  const client = new HttpClient(url.origin, {
    tls: materialFor(access.tls(), target, authenticated),
    lookup: access.lookup,
  });
  try {
    const sent = authenticated ? await credential(access) : {};
    const headers = { 'user-agent': userAgent, ...sent };
    const reply = await client.request({ method: 'GET', path: url.pathname + url.search, headers, signal });
    return {
      kind: 'status',
      status: reply.status,
      body: await startOf(new CredentialMask(sent, true).body(inLargePieces(reply.body))),
    };
  } finally {
    client.destroy();
  }
}

function mayAuthenticate(
  { authenticate }: ProbeTarget,
  url: URL,
  { server, isForServerAlone }: ApiServerAccess,
): boolean {
  if (isForServerAlone) return authenticate !== false && url.origin === server;
  return authenticate === 'atKubeconfigHost' ? url.hostname === new URL(server).hostname : authenticate;
}

function materialFor(
  { ca, cert, key, rejectUnauthorized }: TlsMaterial,
  { serverName }: ProbeTarget,
  authenticated: boolean,
): TlsMaterial {
  return {
    rejectUnauthorized,
    ...(ca && { ca }),
    ...(authenticated && { ...(cert && { cert }), ...(key && { key }) }),
    ...(serverName !== undefined && { servername: serverName }),
  };
}

/** Without a credential the server answers 401, which counts as alive: a missing credential is our own failure. */
async function credential(access: ApiServerAccess): Promise<Readonly<Record<string, string>>> {
  return access.authHeaders().catch(() => ({}));
}

/** The status counts even if the body is slow or cut off. */
async function startOf(body: OpenReply['body']): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of body) {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= LONGEST_BODY) break;
    }
  } catch {
    // Returns what arrived before the failure.
  }
  return Buffer.concat(chunks).subarray(0, LONGEST_BODY).toString('utf8');
}

const EVERY_MS = 100;

/**
 * Measures the lag of this process's event loop with a timer that should fire every 100 ms.
 * @param clockMs a monotonic clock
 * @returns a function that ends the measurement and returns the longest time in ms without a timer call
 */
export function measureLag(clockMs = () => performance.now()): () => number {
  let worstMs = 0;
  let servedAtMs = clockMs();
  const serve = () => {
    const nowMs = clockMs();
    worstMs = Math.max(worstMs, nowMs - servedAtMs - EVERY_MS);
    servedAtMs = nowMs;
  };
  const timer = setInterval(serve, EVERY_MS);
  timer.unref();
  return () => {
    clearInterval(timer);
    serve();
    return worstMs;
  };
}
