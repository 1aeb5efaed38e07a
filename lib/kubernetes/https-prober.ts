import type { ProbeReply } from '../cluster/probe-reply.ts';
import { unlessAborted } from '../util/async.ts';
import { isLocalHost } from '../util/hosts.ts';
import type { Prober, ProbeTarget } from './cluster-port.ts';
import { localRefused } from './dns.ts';
import { HttpClient, type HttpReply } from './http-client.ts';
import type { ApiServerAccess, TlsMaterial } from './kubeconfig.ts';
import { CredentialMask } from './mask-credential.ts';
import { describeNetworkError, isTlsAlert, networkFaultOf } from './network-fault.ts';
import { inLargePieces } from './reply-bounds.ts';
import { type KeptConnections, poolKey } from './transport.ts';

export interface HttpsProberOptions {
  readonly access: ApiServerAccess;
  readonly deadline: AbortSignal;
  readonly userAgent: string;
  readonly kept?: KeptConnections;
  /** Measures the lag of this process's event loop. Default: with a timer. */
  readonly measureLag?: () => () => number;
}

const LONGEST_PROBE_MS = 3_000;
/** If this process's event loop lagged for this long, a timeout does not prove silence: the answer may have come in time. */
const LATE_MS = 500;
/** The time limit of the second probe, which begins as soon as the event loop is free. A pass has time for both probes. */
const AGAIN_MS = 1_000;
const LONGEST_BODY = 4_096;

/** Key exchange groups without the post-quantum group, whose keys take 2.3 KB of each handshake. */
const SHORT_KEYS = 'X25519:P-256:P-384';

/**
 * Returns a prober that uses the kubeconfig's CA. The prober sends the credential only if the target requests this and the
 * certificate is verified. If the time for probes ends first, a timeout does not count as silence. If a probe timed out while
 * this process was busy, for example with a long reply of another cluster, the prober probes once more.
 */
export function httpsProber(given: HttpsProberOptions): Prober {
  const options = { measureLag, ...given };
  const { deadline } = options;
  return async (target, endOfProbes) => {
    const end = endOfProbes === undefined ? deadline : AbortSignal.any([deadline, endOfProbes]);
    const reply = await probeFor(LONGEST_PROBE_MS, target, end, options);
    return reply.late ? { ...(await probeFor(AGAIN_MS, target, end, options)), late: true } : reply;
  };
}

type Options = HttpsProberOptions & Required<Pick<HttpsProberOptions, 'measureLag'>>;

async function probeFor(limitMs: number, target: ProbeTarget, end: AbortSignal, options: Options): Promise<ProbeReply> {
  const signal = AbortSignal.any([end, AbortSignal.timeout(limitMs)]);
  const worstLag = options.measureLag();
  try {
    return await unlessAborted(signal, () => ask(target, options, signal));
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

type Answer = Extract<ProbeReply, { readonly kind: 'status' }>;

async function ask(target: ProbeTarget, options: Options, signal: AbortSignal): Promise<Answer> {
  const { access, userAgent, kept } = options;
  const { lookup } = access;
  const url = new URL(target.url);
  if (lookup !== undefined && isLocalHost(url)) throw localRefused(url.host);
  const isTls = url.protocol === 'https:';
  const { ca, cert, key, rejectUnauthorized } = access.tls();
  const authenticated = mayAuthenticate(target, url, access) && rejectUnauthorized && isTls;
  const tls = { rejectUnauthorized, ca, servername: target.serverName, ...(authenticated && { cert, key }) };
  const askOn = async (client: HttpClient, limitMs?: number): Promise<Answer> => {
    const end = limitMs === undefined ? signal : AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
    // Without a readable credential the probe is anonymous, because the answer 401 also shows that the server is alive.
    const sent = authenticated ? await access.authHeaders().catch(() => ({})) : {};
    const headers = { 'user-agent': userAgent, ...sent };
    const reply = await client.request({ method: 'GET', path: url.pathname + url.search, headers }, end);
    const body = await startOf(new CredentialMask(sent).body(inLargePieces(reply.body)));
    return { kind: 'status', status: reply.status, body };
  };
  const askOnce = async (material: TlsMaterial): Promise<Answer> => {
    const client = new HttpClient(url.origin, { tls: material, lookup });
    return askOn(client).finally(() => client.destroy());
  };
  if (authenticated || !isTls) return askOnce(tls);
  const short = { ...tls, ecdhCurve: SHORT_KEYS };
  try {
    if (kept === undefined || target.isOneServer === undefined) return await askOnce(short);
    const pool = poolKey(url.origin, tls);
    return await kept.ask(pool, () => new HttpClient(url.origin, { tls: short, lookup, connections: 1 }), askOn);
  } catch (error) {
    // The server sends an alert if it supports none of the key exchange groups in `SHORT_KEYS`. Then the probe is
    // repeated with the default groups. A probe that failed because of the certificate is not repeated, because the
    // verification of a long chain takes half a second of CPU time.
    if (!isTlsAlert(error)) throw error;
    return askOnce(tls);
  }
}

function mayAuthenticate(
  { authenticate }: ProbeTarget,
  url: URL,
  { server, isIssuedForServer }: ApiServerAccess,
): boolean {
  if (isIssuedForServer) return authenticate !== false && url.origin === server;
  return authenticate === 'atKubeconfigHost' ? url.hostname === new URL(server).hostname : authenticate;
}

/** Returns the start of the body. A slow or incomplete body is not an error, because the status counts. */
async function startOf(body: HttpReply['body']): Promise<string> {
  let start: Buffer = Buffer.alloc(0);
  try {
    for await (const piece of body) {
      start = Buffer.concat([start, piece]);
      if (start.length >= LONGEST_BODY) break;
    }
  } catch {
    // The bytes that arrived before the failure are returned.
  }
  return start.toString('utf8', 0, LONGEST_BODY);
}

const EVERY_MS = 100;

/** Starts to measure the lag of the event loop. The returned function ends the measurement, and returns the longest lag in ms. */
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
