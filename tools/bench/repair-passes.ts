// Passes of cluster-ip-repair, for tools/bench/repair.ts, which bundles it as functions are:
//
//   repair-passes KUBECONFIG CIDR PASSES
//
// Reads the same list after each pass. Prints a line for each pass: its milliseconds, its milliseconds of CPU time, the peak memory
// in KB, and the milliseconds of CPU time of the read.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { get } from 'node:https';
import { createGunzip } from 'node:zlib';
import { clusterPort } from '../../lib/kubernetes/api-server-cluster.ts';
import { loadKubeconfigFile } from '../../lib/kubernetes/kubeconfig.ts';
import { ApiServerConnections } from '../../lib/kubernetes/transport.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { memoryTable } from '../../test/support/memory-table.ts';
import { aPassContext } from '../../test/support/pass-world.ts';
import { timesOf } from './figure.ts';

const [, , kubeconfig = '', cidr = '', passes = '1'] = process.argv;
const access = await loadKubeconfigFile(kubeconfig);
const { server } = access;
const transport = new ApiServerConnections().transport(access);
const table = memoryTable({ nowMs: Date.now });

async function runPass(): Promise<void> {
  const deadline = AbortSignal.timeout(120_000);
  const context = aPassContext({
    spec: { allocator: 'table', serviceClusterIPRanges: [cidr] },
    table,
    kubernetes: clusterPort({ transport, server, deadline, userAgent: 'bench' }),
    passId: randomUUID(),
    nowMs: Date.now,
    triesEveryMs: 180_000,
  });
  const { errors } = await clusterIpRepair.run(context);
  if (errors.length > 0) throw errors[0];
}

function readList(): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'accept-encoding': 'gzip' };
    get(`${server}/api/v1/services`, { rejectUnauthorized: false, headers }, (reply) => {
      reply.pipe(createGunzip()).resume().once('end', resolve).once('error', reject);
    }).once('error', reject);
  });
}

/** Returns the peak memory of this process. `maxRSS` would include the memory of the parent process at the start. */
function peakKb(): number {
  return Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]);
}

for (let count = 0; count < Number(passes); count += 1) {
  const pass = [...(await timesOf(runPass)), peakKb()];
  const [, readCpuMs] = await timesOf(readList);
  console.log(...pass, readCpuMs);
}
process.exit();
