// Passes of cluster-ip-repair over a list of Services from a server on loopback, beside upstream's repair in Go and beside a
// program that only reads the list.
import { execFile, execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { kubeconfigOf, newIdentity } from '../../local/stand-in/identity.ts';
import { serviceList } from '../../test/kubernetes/protobuf-writer.ts';
import { bundle, heapOptions } from '../../test/support/bundled-functions.ts';

const CIDR = '10.0.0.0/15';
const ROOT = path.join(import.meta.dirname, '../..');
const NO_SUCH_PATH = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 };

export interface RepairOptions {
  readonly services: number;
  readonly passes: number;
  readonly clusters?: number;
  /** Default: 256. */
  readonly memoryMb?: number;
}

interface Measured {
  readonly passMs: readonly number[];
  /** After each pass, or after all. */
  readonly peakMb: readonly number[];
}

/** Runs a program, given a kubeconfig, while a server serves a list of Services. */
async function besideServer<Result>(services: number, folder: string, run: (kubeconfig: string) => Promise<Result>) {
  const list = serviceList(Array.from({ length: services }, (_, index) => service(index)));
  const zipped = gzipSync(list, { level: 4 });
  const identity = newIdentity('bench');
  const server = createServer(identity.certified, ({ url = '', headers }, response) => {
    if (!url.startsWith('/api/v1/services')) {
      response.writeHead(404, { 'content-type': 'application/json' }).end(JSON.stringify(NO_SUCH_PATH));
      return;
    }
    const isZipped = String(headers['accept-encoding']).includes('gzip');
    const type = { 'content-type': 'application/vnd.kubernetes.protobuf' };
    response.writeHead(200, { ...type, ...(isZipped && { 'content-encoding': 'gzip' }) });
    response.end(isZipped ? zipped : list);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const kubeconfig = path.join(folder, 'kubeconfig');
  writeFileSync(kubeconfig, kubeconfigOf('bench', `https://127.0.0.1:${port}`, identity));
  try {
    return await run(kubeconfig);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

function service(index: number) {
  const clusterIP = `10.${Math.floor(index / 62_500)}.${1 + (Math.floor(index / 250) % 250)}.${1 + (index % 250)}`;
  return {
    name: `service-${index}`,
    namespace: `namespace-${index % 100}`,
    uid: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
    resourceVersion: String(index + 100),
    createdAtMs: Date.parse('2026-01-02T03:04:05Z'),
    type: 'ClusterIP',
    clusterIP,
    clusterIPs: [clusterIP],
    ports: [{ protocol: 'TCP', nodePort: 0 }],
    healthCheckNodePort: 0,
  };
}

/** Runs our passes in a process with the heap of a function. After each pass, the process only reads the list, as the peer. */
export async function repairPasses(folder: string, { services, passes, clusters = 1, memoryMb = 256 }: RepairOptions) {
  await bundle(folder, ['tools/bench/repair-passes.ts']);
  const program = path.join(folder, 'repair-passes.mjs');
  return besideServer(services, folder, async (kubeconfig) => {
    const args = [kubeconfig, CIDR, String(passes), String(clusters)];
    const printed = await run(process.execPath, [...heapOptions(memoryMb).split(' '), program, ...args]);
    const column = (at: number) => printed.map((line) => Number(line.split(' ')[at]));
    const [passMs, cpuMs, readCpuMs, peakKb] = [column(0), column(1), column(2), column(3)];
    return { passMs, cpuMs, readCpuMs, peakMb: peakKb.map((kb) => kb / 1024) };
  });
}

/** Runs passes of upstream's repair. */
export async function upstreamPasses(folder: string, { services, passes }: RepairOptions): Promise<Measured> {
  const program = path.join(folder, 'upstream');
  execFileSync('go', ['build', '-buildvcs=false', '-mod=readonly', '-trimpath', '-o', program, './bench-repair'], {
    cwd: path.join(ROOT, 'test/conformance/control-plane'),
    env: { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' },
    stdio: 'inherit',
  });
  return besideServer(services, folder, async (kubeconfig) => {
    const printed = (await run(program, [kubeconfig, CIDR, String(passes), 'protobuf'])).map(Number);
    return { passMs: printed.slice(0, -1), peakMb: printed.slice(-1).map((kb) => kb / 1024) };
  });
}

async function run(program: string, args: readonly string[]): Promise<string[]> {
  const { stdout } = await promisify(execFile)(program, args);
  return stdout.trim().split('\n');
}
