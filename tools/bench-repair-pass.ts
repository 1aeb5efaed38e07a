// Passes of cluster-ip-repair against a real API server, for tools/bench-repair.ts, which bundles it as functions are:
//
//   bench-repair-pass KUBECONFIG CIDR PASSES
//
// Prints the milliseconds of each pass, a line each, and the peak of its memory in KB as the last.
import { randomUUID } from 'node:crypto';
import { clusterPort } from '../lib/kubernetes/api-server-cluster.ts';
import { loadKubeconfigFile } from '../lib/kubernetes/kubeconfig.ts';
import { ApiServerConnections } from '../lib/kubernetes/transport.ts';
import { clusterIpRepair } from '../lib/loops/cluster-ip-repair.ts';
import { startDeadline } from '../lib/runtime/deadline.ts';
import { parseClusterSpec } from '../lib/spec/parse-cluster-spec.ts';
import { memoryTable } from '../test/support/memory-table.ts';

const [, , kubeconfig = '', cidr = '', passes = '1'] = process.argv;
const parsed = parseClusterSpec(`
name: bench
mode: enforce
allocator: table
kubeconfig: { file: none }
apiServers: [{ address: 203.0.113.10 }]
serviceClusterIPRange: ${cidr}
`);
if ('faults' in parsed) throw new Error(parsed.faults.map(({ message }) => message).join('\n'));

const access = await loadKubeconfigFile(kubeconfig);
const connections = new ApiServerConnections();
const table = memoryTable({ nowMs: Date.now, newWriteId: randomUUID });
for (let pass = 0; pass < Number(passes); pass += 1) {
  const startedAt = performance.now();
  const kubernetes = clusterPort({
    transport: connections.transport(access),
    server: access.server,
    deadline: AbortSignal.timeout(120_000),
    userAgent: 'bench',
  });
  const { errors } = await clusterIpRepair.run({
    spec: parsed.spec,
    rangesGeneration: 1,
    table,
    kubernetes,
    probe: () => Promise.reject(new Error('a repair probes nothing')),
    lookUp: async () => undefined,
    controlPlane: { id: 'measured', confirm: async () => true },
    passId: randomUUID(),
    nowMs: Date.now,
    triesEveryMs: 180_000,
    startDeadline: startDeadline,
    pause: async () => undefined,
    state: undefined,
  });
  if (errors.length > 0) throw errors[0];
  console.log(performance.now() - startedAt);
}
console.log(process.resourceUsage().maxRSS);
process.exit();
