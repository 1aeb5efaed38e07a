// Passes of kubernetes-service of a healthy cluster, for tools/bench/functions.ts, which bundles it as functions are:
//
//   tick-passes KUBECONFIG PASSES URL...
//
// Prints a line for each pass: its milliseconds of CPU time, and the milliseconds of CPU time of the same requests over
// node:https alone.
import { randomUUID } from 'node:crypto';
import { Agent, get } from 'node:https';
import { json } from 'node:stream/consumers';
import { clusterPort } from '../../lib/kubernetes/api-server-cluster.ts';
import { httpsProber } from '../../lib/kubernetes/https-prober.ts';
import { loadKubeconfigFile } from '../../lib/kubernetes/kubeconfig.ts';
import { ApiServerConnections, KeptConnections } from '../../lib/kubernetes/transport.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import { startDeadline } from '../../lib/runtime/deadline.ts';
import { memoryTable } from '../../test/support/memory-table.ts';
import { aPassContext } from '../../test/support/pass-world.ts';
import { timesOf } from './figure.ts';

const [, , kubeconfig = '', passes = '1', ...urls] = process.argv;
const apiServers = urls.map((url, index) => ({
  address: `203.0.113.${10 + index}`,
  kind: 'server' as const,
  probe: { url: `${url}/readyz`, path: '/readyz', authenticate: false },
}));
const access = await loadKubeconfigFile(kubeconfig);
const { server } = access;
const transport = new ApiServerConnections().transport(access);
const kept = new KeptConnections(Date.now);
const table = memoryTable({ nowMs: Date.now });

async function runPass(): Promise<void> {
  const deadline = AbortSignal.timeout(10_000);
  const ask = httpsProber({ access, deadline, userAgent: 'bench', kept });
  const context = aPassContext({
    spec: { apiServers },
    table,
    kubernetes: clusterPort({ transport, server, deadline, userAgent: 'bench' }),
    // `isOneServer` makes the prober keep its connections between passes.
    probe: (target, end) => ask({ ...target, isOneServer: true }, end),
    passId: randomUUID(),
    nowMs: Date.now,
    startDeadline,
  });
  const { errors } = await kubernetesService.run(context);
  if (errors.length > 0) throw errors[0];
}

const agent = new Agent({ keepAlive: true, rejectUnauthorized: false });

function read(url: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    get(url, { agent }, (reply) => resolve(reply.resume())).once('error', reject);
  });
}

async function readObject(path: string): Promise<unknown> {
  const headers = await access.authHeaders();
  return new Promise((resolve, reject) => {
    get(`${server}${path}`, { agent, headers }, (reply) => resolve(json(reply))).once('error', reject);
  });
}

async function onlyRequests(): Promise<void> {
  await Promise.all(urls.map((url) => read(`${url}/readyz`)));
  await Promise.all([
    readObject('/api/v1/namespaces/default/services/kubernetes'),
    readObject('/api/v1/namespaces/default/endpoints/kubernetes'),
    readObject(
      '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dkubernetes',
    ),
  ]);
}

for (let pass = 0; pass < Number(passes); pass += 1) {
  const [, ours] = await timesOf(runPass);
  const [, others] = await timesOf(onlyRequests);
  console.log(ours, others);
}
process.exit();
