import { expect, test } from '@jest/globals';
import type { ProbeReply } from '../../lib/cluster/probe-reply.ts';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { aProcess } from '../support/a-process.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { type FaultServer, startFaultServer } from '../support/api-fault-server.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';

const [before, after, stranger] = [makeAuthority('before'), makeAuthority('after'), makeAuthority('stranger')];
type Authority = ReturnType<typeof makeAuthority>;

const STORED = aClusterSpec({ kubeconfig: { ssm: '/x' } });
const NAMESPACE = { kind: 'Namespace', apiVersion: 'v1', metadata: { name: 'default', resourceVersion: '1' } };

/** Starts an API server with a certificate of this CA. It accepts all requests except those with the token `old`. */
async function serverOf({ issue }: Authority): Promise<FaultServer> {
  const server = await startFaultServer(
    ({ headers }) => ({ status: headers['authorization'] === 'Bearer old' ? 401 : 200, body: NAMESPACE }),
    issue(['127.0.0.1']),
  );
  afterThisTest(server.stop);
  return server;
}

/** Returns a process whose kubeconfig is in a store, and the stored kubeconfig. */
function aStoringProcess({ server, ca, token = 'new' }: { server: string; ca: string; token?: string }) {
  const stored = { server, ca, token, isThere: true };
  const process = aProcess(async () => {
    if (!stored.isThere) throw new ClusterError('Unavailable', 'the store gives no answer');
    const text = kubeconfigTo(stored.server, { ca: stored.ca, user: { token: stored.token } });
    return parseKubeconfig(text, 'in the store');
  });
  /** Opens the connection for a pass that begins this many seconds after the last pass. */
  const pass = (seconds: number) => {
    process.clock.nowMs += seconds * 1000;
    return process.connect(STORED, 'kubernetes-service');
  };
  const probe = async (seconds: number, { url }: FaultServer, authenticate = false): Promise<ProbeReply> =>
    (await pass(seconds)).probe({ url: `${url}/readyz`, authenticate });
  return { ...process, stored, pass, probe };
}

test('if the certificate of the server cannot be verified, a call is repeated with the current kubeconfig in the same pass', async () => {
  const server = await serverOf(after);
  const { stored, pass, reads } = aStoringProcess({ server: server.url, ca: before.ca });
  await pass(0);
  stored.ca = after.ca;
  const { kubernetes } = await pass(3_600);
  await expect(kubernetes.get({ kind: 'Namespace', name: 'default' })).resolves.toMatchObject(NAMESPACE);
  expect(reads()).toBe(2);
});

test('a probe whose credential is refused is repeated with the new credential', async () => {
  const server = await serverOf(before);
  const { stored, pass, probe } = aStoringProcess({ server: server.url, ca: before.ca, token: 'old' });
  await pass(0);
  stored.token = 'new';
  await expect(probe(3_600, server, true)).resolves.toMatchObject({ status: 200 });
});

test('if a certificate cannot be verified, probes have the result "unknown" until the kubeconfig is read again, a minute after the last read', async () => {
  const [first, second] = [await serverOf(after), await serverOf(stranger)];
  const { stored, pass, probe, reads } = aStoringProcess({ server: first.url, ca: before.ca });
  await pass(0);
  stored.ca = after.ca;
  await expect(probe(3_600, first)).resolves.toMatchObject({ status: 200 });
  stored.ca = after.ca + stranger.ca;
  for (const seconds of [10, 10, 10, 10, 10]) {
    await expect(probe(seconds, second)).resolves.toMatchObject({ kind: 'unknown' });
  }
  await expect(probe(10, second)).resolves.toMatchObject({ status: 200 });
  expect(reads()).toBe(3);
});

test('if a certificate can never be verified, the kubeconfig is read once a minute; probes have the result "unknown" before the first of these reads, and the result "tlsFailure" after that read', async () => {
  const server = await serverOf(stranger);
  const { pass, probe, reads } = aStoringProcess({ server: server.url, ca: before.ca });
  await pass(0);
  for (let passes = 0; passes < 60; passes += 1) {
    await expect(probe(10, server)).resolves.toMatchObject({ kind: passes < 5 ? 'unknown' : 'tlsFailure' });
  }
  expect(reads()).toBe(1 + 10);
});

test('if a certificate cannot be verified with a kubeconfig that was just read, probes have the result tlsFailure at once', async () => {
  const server = await serverOf(stranger);
  const { probe, reads } = aStoringProcess({ server: server.url, ca: before.ca });
  for (const seconds of [0, 10, 10])
    await expect(probe(seconds, server)).resolves.toMatchObject({ kind: 'tlsFailure' });
  expect(reads()).toBe(1);
});

test('if a certificate cannot be verified and the store of kubeconfigs does not answer, probes have the result "unknown", and the store is called once a minute', async () => {
  const server = await serverOf(stranger);
  const { stored, pass, probe, reads } = aStoringProcess({ server: server.url, ca: before.ca });
  await pass(0);
  stored.isThere = false;
  for (let passes = 0; passes < 30; passes += 1) {
    await expect(probe(10, server)).resolves.toMatchObject({ kind: 'unknown' });
  }
  expect(reads()).toBe(1 + 5);
});
