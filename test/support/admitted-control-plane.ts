import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parse, stringify } from 'yaml';
import { admission } from '../../lib/admission/admission.ts';
import { startDeadline } from '../../lib/runtime/deadline.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { type AdmissionServer, startAdmissionServer } from './admission-server.ts';
import { untilBootstrapped } from './bootstrapped.ts';
import { type Etcd, type KubeApiserver, startEtcd, startKubeApiserver } from './control-plane.ts';
import { aDispatchWorld, type DispatchWorld } from './dispatch-world.ts';
import { eventually } from './eventually.ts';
import { CLUSTER, type Handlers, startHandlers } from './handlers.ts';
import { freePort } from './server-process.ts';

const TOKEN = 'only-the-api-server-of-this-test-knows-it';
const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
const shipped = path.join(import.meta.dirname, '..', '..', 'deploy');

/** A stock API server that allocates from the table through the webhook of deploy/. */
export interface AdmittedControlPlane {
  readonly etcd: Etcd;
  readonly apiserver: KubeApiserver;
  readonly handlers: Handlers;
  /** Of the webhook. */
  readonly world: DispatchWorld;
  readonly webhook: AdmissionServer;
  /** Returns once the API server sends each Service for review so many times. */
  readonly untilReviewed: (times: number) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** @param clock of the passes and of the webhook; default: that of this machine */
export async function startAdmittedControlPlane(
  serviceClusterIPRange: string,
  clock = Date.now,
): Promise<AdmittedControlPlane> {
  const folder = await mkdtemp(path.join(tmpdir(), 'kube-bootstrap-controller-admission-'));
  const port = await freePort('127.0.0.1');
  const etcd = await startEtcd();
  const extraArgs = [`--admission-control-config-file=${await admissionConfig(folder, port)}`];
  const apiserver = await startKubeApiserver({ etcd, serviceClusterIPRange, extraArgs });
  await untilBootstrapped(apiserver);
  const handlers = await startHandlers({
    kubeconfigFile: apiserver.kubeconfigFile,
    spec: { allocator: 'table', serviceClusterIPRange, apiServers: [{ address: '10.9.8.7' }] },
    clock,
  });
  // Ranges open for allocation after a pass.
  for (const loop of ['cluster-ip-repair', 'node-port-repair'] as const) await handlers.run(loop);
  const world = aDispatchWorld({ nowMs: clock, startDeadline, table: () => handlers.table });
  const authority = makeAuthority('admission of the test');
  const handler = admission({
    settings: { onFailure: 'refuse', deadlineMs: 28_000, tokenStore: 'secretsManager', secretsPrefix: 'test/' },
    readTokens: async () => ({ outcome: 'read', text: TOKEN }),
  });
  const webhook = await startAdmissionServer(handler, { environment: world.environment, authority, port });
  const untilReviewed = (times: number) =>
    eventually(async () => {
      const before = webhook.reviews.length;
      const probe = { metadata: { name: 'probe' }, spec: { ports: [{ port: 80 }] } };
      const path = '/api/v1/namespaces/default/services?dryRun=All';
      const { body } = await apiserver.request<{ message?: string }>('POST', path, probe);
      const reviews = webhook.reviews.length - before;
      if (reviews !== times) throw new Error(`the API server asks the webhook ${reviews} times: ${body.message}`);
    });
  const { status } = await apiserver.request('POST', CONFIGURATIONS, await configuration(port, authority.ca));
  if (status !== 201) throw new Error(`the API server answered ${status} to the webhook's configuration`);
  await untilReviewed(1);
  const close = async () => {
    await handlers.close();
    await etcd.stop();
    await webhook.close();
    await rm(folder, { recursive: true });
  };
  return { etcd, apiserver, handlers, world, webhook, untilReviewed, close };
}

/** The files of deploy/ for the API server, with the paths and the host of this test. */
async function admissionConfig(folder: string, port: number): Promise<string> {
  const file = (name: string) => path.join(folder, name);
  const config = parse(await readFile(path.join(shipped, 'admission-config.yaml'), 'utf8'));
  config.plugins[0].configuration.kubeConfigFile = file('kubeconfig.yaml');
  const kubeconfig = parse(await readFile(path.join(shipped, 'admission-kubeconfig.yaml'), 'utf8'));
  kubeconfig.users[0].name = `127.0.0.1:${port}`;
  kubeconfig.users[0].user.tokenFile = file('token');
  await writeFile(file('token'), `${TOKEN}\n`);
  await writeFile(file('kubeconfig.yaml'), stringify(kubeconfig));
  await writeFile(file('config.yaml'), stringify(config));
  return file('config.yaml');
}

async function configuration(port: number, ca: string): Promise<object> {
  const configuration = parse(await readFile(path.join(shipped, 'admission-webhook.yaml'), 'utf8'));
  configuration.webhooks[0].timeoutSeconds = 30;
  const url = `https://127.0.0.1:${port}/${CLUSTER}`;
  configuration.webhooks[0].clientConfig = { url, caBundle: Buffer.from(ca).toString('base64') };
  return configuration;
}
