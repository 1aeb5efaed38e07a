import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { findBinaries } from './binaries.ts';
import { etcdClient } from './etcd-client.ts';
import { eventually } from './eventually.ts';
import { kubeconfigTo } from './kubeconfig-to.ts';
import { SERVICE_PATH } from './kubernetes-service-objects.ts';
import { type RawRequests, rawRequests } from './raw-requests.ts';
import { freePort, type ServerProcess, startServer } from './server-process.ts';

export type Etcd = Awaited<ReturnType<typeof startEtcd>>;

export interface KubeApiserverOptions {
  readonly etcd: Etcd;
  /** The address on which it listens. Default: 127.0.0.1. A second one on the same etcd uses 127.0.0.2 and the same port. */
  readonly bindAddress?: string;
  readonly port?: number;
  /** The address that it publishes as its own. Endpoints refuse loopback addresses. Default: 10.9.8.7. */
  readonly advertiseAddress?: string;
  /** The type of reconciler. Default: `none`, which creates the `kubernetes` Service but not its endpoints. */
  readonly endpointReconcilerType?: 'none' | 'lease' | 'master-count';
  readonly serviceClusterIPRange?: string;
  /** Starts the variant that creates no namespace, ServiceCIDR or Service and repairs nothing. Default: false. */
  readonly hooksOff?: boolean;
  /**
   * The path that answers 200 once the API server is started. Default: `/readyz`, and then the start also waits for the objects
   * that the API server creates.
   */
  readonly readyPath?: string;
  /** More flags, such as `--service-node-port-range=30000-30010`. If a flag occurs twice, the last value applies. */
  readonly extraArgs?: readonly string[];
}

export type KubeApiserver = Awaited<ReturnType<typeof startKubeApiserver>>;

/** Starts an etcd with an empty store and waits until it is healthy. */
export async function startEtcd() {
  const { etcd } = findBinaries();
  const folder = temporaryFolder('etcd');
  const url = `http://127.0.0.1:${await freePort('127.0.0.1')}`;
  const args = [
    `--data-dir=${join(folder, 'data')}`,
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    '--listen-peer-urls=http://127.0.0.1:0',
    '--unsafe-no-fsync',
  ];
  const isHealthy = async () => (await fetch(`${url}/health`)).ok;
  const server = await startServer(etcd, args, folder, isHealthy);
  const hooks: (() => Promise<void>)[] = [];
  return {
    ...etcdClient(url),
    url,
    /** Adds a function that `close` calls before etcd ends. */
    beforeStop: (hook: () => Promise<void>) => void hooks.push(hook),
    /** Stops the API servers first, then etcd. An API server without etcd would hang in its graceful stop. */
    async close() {
      await Promise.allSettled(hooks.splice(0).map((hook) => hook()));
      await server.stop();
      remove(folder);
    },
  };
}

/**
 * Starts an API server and waits until it is ready. A stock API server has then created its own objects. The API server stops
 * before its etcd.
 */
export async function startKubeApiserver(options: KubeApiserverOptions) {
  const command = kubeApiserverCommand(options.hooksOff ?? false);
  const host = options.bindAddress ?? '127.0.0.1';
  const port = options.port ?? (await freePort(host));
  const url = `https://${host}:${port}`;
  const folder = temporaryFolder('kube-apiserver');
  const args = kubeApiserverArgs(options, host, port, folder);
  const caFile = join(folder, 'apiserver.crt');

  const { request, send, close } = rawRequests({ url, caFile, token: adminToken });
  const isReady = async () => (await request('GET', options.readyPath ?? '/readyz')).status === 200;
  const start = () => startServer(command, args, folder, isReady);

  let server: ServerProcess = await start();
  if (!options.hooksOff && options.readyPath === undefined) await untilBootstrapped(request);
  const ca = readFileSync(caFile, 'utf8');
  const kubeconfigYaml = kubeconfigTo(url, { ca, user: { token: adminToken } });
  const kubeconfigFile = join(folder, 'kubeconfig');
  writeFileSync(kubeconfigFile, kubeconfigYaml, { mode: 0o600 });

  const stop = async () => {
    await close();
    await server.stop();
    remove(folder);
  };
  options.etcd.beforeStop(stop);
  return {
    url,
    port,
    /** The PEM certificate of its self-signed CA, which stays the same after a restart. */
    ca,
    caFile,
    /** A token of the group `system:masters`, the same for all API servers of this process. */
    token: adminToken,
    kubeconfigYaml,
    kubeconfigFile,
    request,
    send,
    /** Sends SIGTERM and waits until `/readyz` reports the shutdown. The server then serves for `--shutdown-delay-duration`. */
    async askToStop() {
      server.askToStop();
      await eventually(async () => {
        if (await isReady()) throw new Error(`${url} does not report its shutdown yet`);
      });
    },
    /** Sends SIGKILL, so that the published address of the server stays. */
    kill: () => server.kill(),
    /** Kills the server if it runs, starts it with the same port and certificate, and waits until it is ready. */
    async restart() {
      await server.kill();
      server = await start();
    },
  };
}

const adminToken = randomUUID();

let serviceAccountKeys: { readonly publicKey: string; readonly privateKey: string } | undefined;

function kubeApiserverCommand(hooksOff: boolean): string {
  const { kubeApiserver, kubeApiserverHooksOff } = findBinaries();
  if (!hooksOff) return kubeApiserver;
  if (kubeApiserverHooksOff !== undefined) return kubeApiserverHooksOff;
  throw new Error(
    'there is no kube-apiserver with its hooks off, which KUBEBUILDER_ASSETS cannot provide: install Go 1.26 and run "npm run test:conformance", which builds it once',
  );
}

function kubeApiserverArgs(options: KubeApiserverOptions, host: string, port: number, folder: string): string[] {
  serviceAccountKeys ??= generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const secretFile = (name: string, text: string) => {
    const file = join(folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  };
  return [
    `--etcd-servers=${options.etcd.url}`,
    `--bind-address=${host}`,
    `--secure-port=${port}`,
    `--advertise-address=${options.advertiseAddress ?? '10.9.8.7'}`,
    `--endpoint-reconciler-type=${options.endpointReconcilerType ?? 'none'}`,
    `--service-cluster-ip-range=${options.serviceClusterIPRange ?? '10.0.0.0/24'}`,
    `--cert-dir=${folder}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${secretFile('service-account.pub', serviceAccountKeys.publicKey)}`,
    `--service-account-signing-key-file=${secretFile('service-account.key', serviceAccountKeys.privateKey)}`,
    `--token-auth-file=${secretFile('tokens.csv', `${adminToken},admin,admin,system:masters\n`)}`,
    '--authorization-mode=RBAC',
    ...(options.extraArgs ?? []),
  ];
}

const NAMESPACES = ['default', 'kube-node-lease', 'kube-public', 'kube-system'].map(
  (name) => `/api/v1/namespaces/${name}`,
);
const SERVICE_CIDR = '/apis/networking.k8s.io/v1/servicecidrs/kubernetes';

interface ServiceCidr extends KubernetesObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/** Waits until a stock API server, which is ready earlier, has created its own objects. It does not change them later. */
async function untilBootstrapped(request: RawRequests['request']): Promise<void> {
  await eventually(async () => {
    for (const path of [...NAMESPACES, SERVICE_PATH]) {
      if ((await request('GET', path)).status !== 200) throw new Error(`${path} does not exist yet`);
    }
    const { body } = await request<ServiceCidr>('GET', SERVICE_CIDR);
    const isReady = body.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
    if (isReady !== true) throw new Error(`${SERVICE_CIDR} has no condition Ready yet`);
  });
}

function temporaryFolder(name: string): string {
  return mkdtempSync(join(tmpdir(), `kube-bootstrap-controller-${name}-`));
}

function remove(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}
