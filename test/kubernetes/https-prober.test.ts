import { expect, jest, test } from '@jest/globals';
import type { ProbeTarget } from '../../lib/kubernetes/cluster-port.ts';
import { HttpClient } from '../../lib/kubernetes/http-client.ts';
import { type HttpsProberOptions, httpsProber, measureLag } from '../../lib/kubernetes/https-prober.ts';
import { KeptConnections } from '../../lib/kubernetes/transport.ts';
import { type CertifiedKey, makeAuthority } from '../../local/stand-in/identity.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { type FaultServer, type Reaction, startFaultServer } from '../support/api-fault-server.ts';
import { startSilentServer } from '../support/silent-server.ts';
import { accessTo } from '../support/transport-to.ts';

const authority = makeAuthority('the cluster');
const certified = authority.issue(['127.0.0.1']);
const caOf = ({ ca }: { readonly ca: string }) => ({ 'certificate-authority-data': base64(ca) });
const base64 = (text: string) => Buffer.from(text).toString('base64');

interface Set extends Partial<Omit<HttpsProberOptions, 'access'>> {
  /** Replaces `AbortSignal.timeout`. Default: no time limit ever expires. */
  readonly expire?: (ms: number) => AbortSignal;
  readonly tls?: CertifiedKey;
  readonly server?: string;
  readonly cluster?: object;
  readonly user?: object;
  readonly lagMs?: number;
}

/** Returns a timeout and the function that makes it expire. */
function aTime() {
  const time = new AbortController();
  return { end: () => setImmediate(() => time.abort()), expire: () => time.signal };
}

/** Starts a server that never answers. The timeout of the probe expires when the server gets the request. */
async function hangingServerAnd(set: Set) {
  const { end, expire } = aTime();
  const react = (): Reaction => {
    end();
    return { hang: true };
  };
  return serverAnd(react, { expire, ...set });
}

const noTimeout = () => new AbortController().signal;
const ok = () => ({ body: 'ok' });

async function serverAnd(
  react: () => Reaction = ok,
  { tls = certified, server: named, cluster, user, lagMs = 0, expire = noTimeout, ...set }: Set = {},
) {
  const timeout = jest.spyOn(AbortSignal, 'timeout').mockImplementation(expire);
  afterThisTest(() => timeout.mockRestore());
  const server = await startFaultServer(react, tls);
  afterThisTest(server.stop);
  const trust = cluster === undefined ? { ca: authority.ca } : { cluster };
  const access = await accessTo(named ?? 'https://10.0.0.1:6443', { user: user ?? { token: 'secret' }, ...trust });
  const deadline = new AbortController().signal;
  const probe = httpsProber({ access, deadline, userAgent: 'test', measureLag: () => () => lagMs, ...set });
  return { server, probe, target: { url: `${server.url}/readyz?verbose`, authenticate: false } };
}

test.each<[string, Reaction, object]>([
  ['200 with its body', { body: 'ok' }, { status: 200, body: 'ok' }],
  ['a redirect, which it does not follow', { status: 302, headers: { location: '/' } }, { status: 302 }],
  ['401', { status: 401, body: 'Unauthorized' }, { status: 401, body: 'Unauthorized' }],
  ['500', { status: 500, body: '[-]shutdown failed: x' }, { status: 500, body: '[-]shutdown failed: x' }],
  ['at most 4 KB of a body', { body: 'x'.repeat(1_000_000) }, { status: 200, body: 'x'.repeat(4_096) }],
  ['the status of a reply whose body is cut off', { cutOff: 'x'.repeat(1_000) }, { status: 200 }],
  ['silence if the connection is dropped', { reset: true }, { kind: 'silence' }],
])('a probe returns %s', async (_, reaction, reply) => {
  const { probe, target, server } = await serverAnd(() => reaction);
  await expect(probe(target)).resolves.toMatchObject({ kind: 'status', ...reply });
  expect(server.requests).toMatchObject([{ method: 'GET', path: '/readyz?verbose' }]);
});

test('a probe opens a connection of its own and closes it', async () => {
  const { probe, target, server } = await serverAnd();
  await probe(target);
  await probe(target);
  expect(server.requests.map(({ headers }) => headers['connection'])).toEqual(['close', 'close']);
});

const OK = ok();

function keptConnections(nowMs = () => 0): KeptConnections {
  const kept = new KeptConnections(nowMs);
  afterThisTest(() => kept.close());
  return kept;
}

/** Returns a prober that keeps connections, and its clock. */
async function keepingServerAnd(react: (request: number) => Reaction = () => OK, set: Set = {}) {
  const clock = { nowMs: 0 };
  let requests = 0;
  const kept = keptConnections(() => clock.nowMs);
  const next = () => {
    requests += 1;
    return react(requests);
  };
  const world = await serverAnd(next, { kept, ...set });
  return { ...world, clock, target: { ...world.target, isOneServer: true as const } };
}

test('a connection is reused for the probes of the next two ticks, so that every third tick opens a new connection', async () => {
  const { probe, target, server, clock } = await keepingServerAnd();
  const made: number[] = [];
  for (let tick = 0; tick < 7; tick += 1) {
    clock.nowMs = tick * 10_000;
    await expect(probe(target)).resolves.toEqual({ kind: 'status', status: 200, body: 'ok' });
    made.push(server.connections());
  }
  expect(made).toEqual([1, 1, 1, 2, 2, 2, 3]);
});

test.each([
  ['is dropped', { reset: true }, OK, { status: 200 }],
  ['answers 500', { status: 500, body: 'no' }, OK, { status: 200 }],
  ['answers 401', { status: 401, body: 'no' }, OK, { status: 200 }],
  ['is dropped', { reset: true }, { status: 500, body: 'no' }, { status: 500, body: 'no' }],
  ['answers 500', { status: 500, body: 'no' }, { reset: true }, { kind: 'silence' }],
] as const)('if a reused connection %s, the result is that of a new connection', async (_, onKept, onNew, reply) => {
  const { probe, target, server } = await keepingServerAnd((request) => [OK, onKept, onNew][request - 1] ?? OK);
  await probe(target);
  await expect(probe(target)).resolves.toMatchObject(reply);
  expect([server.requests.length, server.connections()]).toEqual([3, 2]);
});

test.each([
  { name: 'the result is the answer on the new connection', isDown: false, reply: { status: 200 } },
  { name: 'the result is silence if the server refuses it', isDown: true, reply: { kind: 'silence' } },
])('if a reused connection is silent for a second, a new connection is opened: $name', async ({ isDown, reply }) => {
  const { end, expire } = aTime();
  const limits: number[] = [];
  const world = await keepingServerAnd(
    (request) => {
      if (request !== 2) return OK;
      if (isDown) world.server.refuse();
      end();
      return { hang: true };
    },
    {
      expire: (ms) => {
        limits.push(ms);
        return ms === 1_000 ? expire() : noTimeout();
      },
    },
  );
  await world.probe(world.target);
  await expect(world.probe(world.target)).resolves.toMatchObject(reply);
  expect(limits).toEqual([3_000, 3_000, 1_000]);
});

const refuse = (server: FaultServer) => server.refuse();
const recertify = (server: FaultServer) => server.setCertificate(authority.issue(['10.0.0.99']));
test.each([
  { name: 'a server that accepts no new connection', change: refuse, kind: 'silence' },
  { name: 'a replaced certificate', change: recertify, kind: 'tlsFailure' },
])('a probe detects $name after 25 s, because probes reuse a connection for less time', async ({ change, kind }) => {
  const { probe, target, server, clock } = await keepingServerAnd();
  await probe(target);
  change(server);
  clock.nowMs = 24_999;
  await expect(probe(target)).resolves.toMatchObject({ status: 200 });
  clock.nowMs = 25_000;
  await expect(probe(target)).resolves.toMatchObject({ kind });
});

test('a connection is not reused after the clock was set back', async () => {
  const { probe, target, server, clock } = await keepingServerAnd();
  await probe(target);
  clock.nowMs = -1;
  await probe(target);
  expect(server.connections()).toBe(2);
});

test.each([
  { name: 'a shared address', change: { isOneServer: undefined } },
  { name: 'an address with the credential', change: { authenticate: true } },
  { name: 'a server that refuses the probe', react: () => ({ status: 401 }) },
  { name: 'a server that answers after a second', tookMs: 1_000 },
])('the connection is not reused after a probe of $name', async ({ change, react = () => OK, tookMs = 0 }) => {
  const { probe, target, server, clock } = await keepingServerAnd(() => {
    clock.nowMs += tookMs;
    return react();
  });
  const changed = { ...target, ...change } as ProbeTarget;
  await probe(changed);
  await probe(changed);
  expect(server.connections()).toBe(2);
});

test('a probe does not reuse the connection of a probe with another CA or server name', async () => {
  const kept = keptConnections();
  const { probe, target, server } = await keepingServerAnd(() => OK, { kept });
  await expect(probe(target)).resolves.toMatchObject({ status: 200 });
  const other = await keepingServerAnd(() => OK, { kept, cluster: caOf(makeAuthority('another cluster')) });
  await expect(other.probe(target)).resolves.toMatchObject({ kind: 'tlsFailure' });
  await expect(probe({ ...target, serverName: 'other' })).resolves.toMatchObject({ kind: 'tlsFailure' });
  await expect(probe(target)).resolves.toMatchObject({ status: 200 });
  expect(server.requests).toHaveLength(2);
});

test('a process keeps at most 128 connections open, and closes none of them to make room for another one', async () => {
  const plain = await startFaultServer(() => OK);
  afterThisTest(plain.stop);
  const kept = keptConnections();
  const get = async (client: HttpClient) => {
    const reply = await client.request({ method: 'GET', path: '/', headers: {} }, new AbortController().signal);
    for await (const piece of reply.body) expect(piece.length).toBeGreaterThan(0);
    return reply;
  };
  let opened = 0;
  const open = () => {
    opened += 1;
    return new HttpClient(plain.url, { tls: { rejectUnauthorized: true }, connections: 1 });
  };
  const keys = Array.from({ length: 129 }, (_, index) => String(index));
  for (const key of [...keys, ...keys]) await kept.ask(key, open, get);
  expect(opened).toBe(130);
});

test('a probe uses post-quantum key exchange if the server accepts nothing else', async () => {
  const tls = { ...certified, ecdhCurve: 'X25519MLKEM768' } as CertifiedKey;
  const { probe, target } = await serverAnd(ok, { tls });
  await expect(probe(target)).resolves.toMatchObject({ status: 200 });
});

test('a probe sends the credential only if the target requires it', async () => {
  const { probe, target, server } = await serverAnd();
  await probe(target);
  await probe({ ...target, authenticate: true });
  expect(server.requests.map(({ headers }) => headers['authorization'])).toEqual([undefined, 'Bearer secret']);
});

test('a probe with authenticate: atKubeconfigHost sends the credential only to the host of the server in the kubeconfig', async () => {
  const certificate = { 'client-certificate-data': base64(certified.cert), 'client-key-data': base64(certified.key) };
  const { probe, target, server } = await serverAnd(ok, { user: { ...certificate, token: 'secret' } });
  const authenticate = 'atKubeconfigHost';
  await expect(probe({ ...target, authenticate })).resolves.toMatchObject({ status: 200 });
  const own = await serverAnd(ok, { server: server.url });
  await own.probe({ ...target, authenticate });
  expect(server.requests.map(({ headers }) => headers['authorization'])).toEqual([undefined, 'Bearer secret']);
});

test('a probe does not send the credential if the certificate is not verified', async () => {
  const tls = makeAuthority('anyone').issue(['anything']);
  const { probe, target, server } = await serverAnd(ok, { tls, cluster: { 'insecure-skip-tls-verify': true } });
  await expect(probe({ ...target, authenticate: true })).resolves.toMatchObject({ status: 200 });
  expect(server.requests[0]?.headers['authorization']).toBeUndefined();
});

test.each([
  ['of another CA', makeAuthority('another authority').issue(['127.0.0.1'])],
  ['for another server name', authority.issue(['10.0.0.99'])],
  ['that expired', authority.issue(['127.0.0.1'], 2021)],
])('a probe of a server with a certificate %s has the result tlsFailure, and sends no request', async (_, tls) => {
  const { probe, target, server } = await serverAnd(ok, { tls });
  await expect(probe({ ...target, authenticate: true })).resolves.toMatchObject({ kind: 'tlsFailure' });
  expect(server.requests).toEqual([]);
});

test('the certificate is verified for the server name of the target', async () => {
  const { probe, target } = await serverAnd(ok, { tls: authority.issue(['api.example.com']) });
  await expect(probe({ ...target, serverName: 'api.example.com' })).resolves.toMatchObject({ status: 200 });
  await expect(probe(target)).resolves.toMatchObject({ kind: 'tlsFailure' });
});

test('a probe whose connection is refused has the result silence, even if the event loop of this process was late', async () => {
  const { probe, target, server } = await serverAnd(ok, { lagMs: 2_000 });
  await server.stop();
  await expect(probe(target)).resolves.toEqual({ kind: 'silence', message: expect.stringContaining('ECONNREFUSED') });
});

test.each([0, 499])('a probe without an answer has the result silence at an event loop lag of %i ms', async (lagMs) => {
  const { probe, target } = await hangingServerAnd({ lagMs });
  await expect(probe(target)).resolves.toEqual({ kind: 'silence', message: 'no answer within 3000 ms' });
});

test('a probe whose connection is never established has the result silence', async () => {
  const { end, expire } = aTime();
  const { probe } = await serverAnd(ok, { expire });
  const silent = await startSilentServer(end);
  afterThisTest(silent.close);
  const answer = await probe({ url: `https://${silent.authority}/readyz`, authenticate: false });
  expect(answer).toEqual({ kind: 'silence', message: 'no answer within 3000 ms' });
  expect(silent.connections()).toBe(1);
});

test('a probe with an invalid URL has the result silence', async () => {
  const { probe } = await serverAnd();
  await expect(probe({ url: 'not a URL', authenticate: false })).resolves.toMatchObject({ kind: 'silence' });
});

/** Returns a function that measures lag. Only the first probe has lag, because the clock jumps once by 2 s. */
function busyOnce() {
  const times = [0].values();
  return () => measureLag(() => times.next().value ?? 2_000);
}

test('if this process was busy during a probe, the probe is repeated at once, and the second answer is the result', async () => {
  const { end, expire } = aTime();
  let requests = 0;
  const react = (): Reaction => {
    requests += 1;
    if (requests > 1) return { body: 'ok' };
    end();
    return { hang: true };
  };
  const limits: number[] = [];
  const expireFirst = (ms: number) => {
    limits.push(ms);
    return limits.length === 1 ? expire() : noTimeout();
  };
  const { probe, target } = await serverAnd(react, { expire: expireFirst, measureLag: busyOnce() });
  await expect(probe(target)).resolves.toEqual({ kind: 'status', status: 200, body: 'ok', late: true });
  expect(limits).toEqual([3_000, 1_000]);
});

test('if this process was busy during a probe, the probe is repeated at once, and the result is silence if the second probe times out too', async () => {
  const { probe, target } = await hangingServerAnd({ measureLag: busyOnce() });
  await expect(probe(target)).resolves.toEqual({ kind: 'silence', message: 'no answer within 1000 ms', late: true });
});

test('a probe that timed out while the event loop of this process was late has the result unknown', async () => {
  const { probe, target } = await hangingServerAnd({ lagMs: 500 });
  const message = 'this process was busy for 500 ms while it waited for the answer';
  await expect(probe(target)).resolves.toEqual({ kind: 'unknown', message, late: true });
});

test.each(['pass', 'time for probes'])('a probe still running at the end of the %s is unknown', async (which) => {
  const end = new AbortController();
  const react = (): Reaction => {
    setImmediate(() => end.abort());
    return { hang: true };
  };
  const { probe, target } = await serverAnd(react, which === 'pass' ? { deadline: end.signal } : {});
  const reply = await probe(target, which === 'pass' ? undefined : end.signal);
  expect(reply).toEqual({ kind: 'unknown', message: 'the time for probes was over' });
});

/**
 * In these tests, the clock advances with the timers of jest, and jumps once by `blockedMs`, as if the event loop had been
 * blocked.
 */
test.each([
  { name: 'is zero while timers fire in time', blockedMs: 0, atEnd: false, lagMs: 0 },
  { name: 'is the delay of a late timer', blockedMs: 700, atEnd: false, lagMs: 700 },
  { name: 'is measured even before the late timer fires', blockedMs: 700, atEnd: true, lagMs: 700 },
])('the lag of the event loop $name', ({ blockedMs, atEnd, lagMs }) => {
  jest.useFakeTimers();
  afterThisTest(() => jest.useRealTimers());
  let extraMs = 0;
  const worst = measureLag(() => jest.now() + extraMs);
  jest.advanceTimersByTime(1_000);
  extraMs = blockedMs;
  jest.advanceTimersByTime(atEnd ? 99 : 1_000);
  expect(worst()).toBeGreaterThanOrEqual(lagMs === 0 ? 0 : lagMs - 1);
  expect(worst()).toBeLessThanOrEqual(lagMs);
  expect(jest.getTimerCount()).toBe(0);
});
