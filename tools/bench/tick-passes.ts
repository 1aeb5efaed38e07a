// Passes of kubernetes-service of a healthy cluster, for tools/bench/tick.ts, which bundles it as functions are:
//
//   tick-passes KUBECONFIG PASSES URL...
//
// Prints a line for each pass: its milliseconds of CPU time, and those of the same requests over node:https alone.
import { randomUUID } from 'node:crypto';
import { Agent, get } from 'node:https';
import { json } from 'node:stream/consumers';
import { parseClusterSpec } from '../../cli/spec/parse-cluster-spec.ts';
import { clusterPort } from '../../lib/kubernetes/api-server-cluster.ts';
import { httpsProber } from '../../lib/kubernetes/https-prober.ts';
import { loadKubeconfigFile } from '../../lib/kubernetes/kubeconfig.ts';
import { ApiServerConnections, KeptConnections } from '../../lib/kubernetes/transport.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import { startDeadline } from '../../lib/runtime/deadline.ts';
import { memoryTable } from '../../test/support/memory-table.ts';
import { timesOf } from './figure.ts';

const [, , kubeconfig = '', passes = '1', ...urls] = process.argv;
const apiServers = urls.map((url, index) => ({ address: `203.0.113.${10 + index}`, probe: { url: `${url}/readyz` } }));
const parsed = parseClusterSpec(
  JSON.stringify({
    name: 'bench',
    mode: 'enforce',
    kubeconfig: { file: 'none' },
    apiServers,
    serviceClusterIPRange: '10.0.0.0/24',
  }),
);
if ('faults' in parsed) throw new Error(parsed.faults.map(({ message }) => message).join('\n'));
const { spec } = parsed;
const access = await loadKubeconfigFile(kubeconfig);
const connections = new ApiServerConnections();
const kept = new KeptConnections(Date.now);
const table = memoryTable({ nowMs: Date.now, newWriteId: randomUUID });

async function runPass(): Promise<void> {
  const deadline = AbortSignal.timeout(10_000);
  const ask = httpsProber({ access, deadline, userAgent: 'bench', kept });
  const { errors } = await kubernetesService.run({
    spec,
    rangesGeneration: 1,
    table,
    kubernetes: clusterPort({
      transport: connections.transport(access),
      server: access.server,
      deadline,
      userAgent: 'bench',
    }),
    // `isOneServer` keeps connections, as for addresses in a spec. The measured addresses are loopback addresses, which
    // endpoints cannot contain.
    probe: (target, end) => ask({ ...target, isOneServer: true }, end),
    lookUp: async () => undefined,
    controlPlane: { id: 'measured', confirm: async () => true },
    passId: randomUUID(),
    nowMs: Date.now,
    triesEveryMs: 10_000,
    startDeadline,
    pause: async () => undefined,
    previous: undefined,
  });
  if (errors.length > 0) throw errors[0];
}

const agent = new Agent({ keepAlive: true, rejectUnauthorized: false });

function read(url: string, headers: Readonly<Record<string, string>> = {}): Promise<unknown> {
  return new Promise((resolve, reject) => {
    get(url, { agent, headers }, (reply) => resolve(reply.resume())).once('error', reject);
  });
}

async function readObject(path: string): Promise<unknown> {
  const headers = await access.authHeaders();
  return new Promise((resolve, reject) => {
    get(`${access.server}${path}`, { agent, headers }, (reply) => resolve(json(reply))).once('error', reject);
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
