// Passes of cluster-ip-repair, for tools/bench/repair.ts, which bundles it as functions are:
//
//   repair-passes KUBECONFIG CIDR PASSES
//
// Prints a line for each pass: its milliseconds, those of its CPU time, and the peak of the memory in KB. Then
// it reads the same list as often, and prints the milliseconds of CPU time of each read, a line each.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { get } from 'node:https';
import { createGunzip } from 'node:zlib';
import { parseClusterSpec } from '../../cli/spec/parse-cluster-spec.ts';
import { clusterPort } from '../../lib/kubernetes/api-server-cluster.ts';
import { loadKubeconfigFile } from '../../lib/kubernetes/kubeconfig.ts';
import { ApiServerConnections } from '../../lib/kubernetes/transport.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { startDeadline } from '../../lib/runtime/deadline.ts';
import { memoryTable } from '../../test/support/memory-table.ts';
import { timesOf } from './figure.ts';

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
const { spec } = parsed;
const access = await loadKubeconfigFile(kubeconfig);
const connections = new ApiServerConnections();

const table = memoryTable({ nowMs: Date.now, newWriteId: randomUUID });

async function runPass(): Promise<void> {
  const kubernetes = clusterPort({
    transport: connections.transport(access),
    server: access.server,
    deadline: AbortSignal.timeout(120_000),
    userAgent: 'bench',
  });
  const { errors } = await clusterIpRepair.run({
    spec,
    rangesGeneration: 1,
    table,
    kubernetes,
    probe: () => Promise.reject(new Error('a repair probes nothing')),
    lookUp: async () => undefined,
    controlPlane: { id: 'measured', confirm: async () => true },
    passId: randomUUID(),
    nowMs: Date.now,
    triesEveryMs: 180_000,
    startDeadline,
    pause: async () => undefined,
    previous: undefined,
  });
  if (errors.length > 0) throw errors[0];
}

function readList(): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'accept-encoding': 'gzip' };
    get(`${access.server}/api/v1/services`, { rejectUnauthorized: false, headers }, (reply) => {
      reply.pipe(createGunzip()).resume().once('end', resolve).once('error', reject);
    }).once('error', reject);
  });
}

/** Returns the peak memory of this process. `maxRSS` would include the memory of the parent process at the start. */
function peakKb(): number {
  return Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]);
}

for (let pass = 0; pass < Number(passes); pass += 1) {
  console.log(...(await timesOf(runPass)), peakKb());
}
for (let read = 0; read < Number(passes); read += 1) {
  const [, cpuMs] = await timesOf(readList);
  console.log(cpuMs);
}
process.exit();
