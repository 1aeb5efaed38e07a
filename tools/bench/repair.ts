// Measures passes of cluster-ip-repair beside upstream's repair in Go, and beside a program that only reads the list.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { kubeconfigOf, newIdentity } from '../../local/stand-in/identity.ts';
import { serviceList } from '../../test/kubernetes/protobuf-writer.ts';
import { bundle, heapOptions } from '../../test/support/bundled-functions.ts';
import { serve } from '../../test/support/serve.ts';
import { type Figure, linesOf } from './figure.ts';

const CIDR = '10.0.0.0/15';
const NO_SUCH_PATH = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 };

interface RepairOptions {
  readonly services: number;
  readonly passes: number;
  /** True if one of a hundred Services gets another address between two passes. Default: nothing changes. */
  readonly changes?: boolean;
}

/** Calls `run` while a server serves a list of Services. The argument is a kubeconfig for this server. */
async function besideServer<Result>(
  { services, changes = false }: RepairOptions,
  folder: string,
  run: (kubeconfig: string) => Promise<Result>,
) {
  const lists = (changes ? [0, services] : [0]).map((moved) => listOf(services, moved));
  let requests = 0;
  const identity = newIdentity('bench');
  const server = await serve(({ url = '', headers }, response) => {
    if (!url.startsWith('/api/v1/services')) {
      response.writeHead(404, { 'content-type': 'application/json' }).end(JSON.stringify(NO_SUCH_PATH));
      return;
    }
    const { list, zipped } = lists[requests++ % lists.length] ?? listOf(0, 0);
    const isZipped = String(headers['accept-encoding']).includes('gzip');
    const type = { 'content-type': 'application/vnd.kubernetes.protobuf' };
    response.writeHead(200, { ...type, ...(isZipped && { 'content-encoding': 'gzip' }) });
    response.end(isZipped ? zipped : list);
  }, identity.certified);
  const kubeconfig = path.join(folder, 'kubeconfig');
  writeFileSync(kubeconfig, kubeconfigOf('bench', server.url, identity));
  try {
    return await run(kubeconfig);
  } finally {
    await server.close();
  }
}

/** @param moved the offset that is added to the address of every hundredth Service */
function listOf(services: number, moved: number) {
  const list = serviceList(
    Array.from({ length: services }, (_, index) => service(index, index % 100 === 0 ? index + moved : index)),
  );
  return { list, zipped: gzipSync(list, { level: 4 }) };
}

function service(index: number, at: number) {
  const clusterIP = `10.${Math.floor(at / 62_500)}.${1 + (Math.floor(at / 250) % 250)}.${1 + (at % 250)}`;
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

/** Runs passes in a process with the heap of a function. For comparison, each pass is followed by a mere read of the same list. */
export async function repairPasses(folder: string, options: RepairOptions) {
  const { passes } = options;
  await bundle(folder, ['tools/bench/repair-passes.ts']);
  const program = path.join(folder, 'repair-passes.mjs');
  return besideServer(options, folder, async (kubeconfig) => {
    const args = [kubeconfig, CIDR, String(passes)];
    const printed = await linesOf(process.execPath, [...heapOptions(256).split(' '), program, ...args]);
    const column = (at: number) => printed.map((line) => Number(line.split(' ')[at]));
    return { passMs: column(0), cpuMs: column(1), readCpuMs: column(3), peakMb: column(2).map((kb) => kb / 1024) };
  });
}

function upstreamProgram(folder: string): string {
  const program = path.join(folder, 'bench-repair');
  execFileSync('go', ['build', '-buildvcs=false', '-mod=readonly', '-trimpath', '-o', program, './bench-repair'], {
    cwd: path.join(import.meta.dirname, '../../test/conformance/control-plane'),
    env: { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' },
    stdio: 'inherit',
  });
  return program;
}

/** Runs passes of upstream's repair. Returns the peak memory after all passes. */
async function upstreamPasses(folder: string, options: RepairOptions) {
  const program = upstreamProgram(folder);
  return besideServer(options, folder, async (kubeconfig) => {
    const printed = (await linesOf(program, [kubeconfig, CIDR, String(options.passes), 'protobuf'])).map(Number);
    return { passMs: printed.slice(0, -1), peakMb: printed.slice(-1).map((kb) => kb / 1024) };
  });
}

export async function repairFigures(folder: string): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const services of [1_000, 10_000, 50_000, 100_000]) {
    figures.push(...(await besideUpstream(folder, { services, passes: services > 10_000 ? 7 : 41 }, 'steady')));
  }
  const changed = await besideUpstream(folder, { services: 50_000, passes: 7, changes: true }, '1 % changed');
  return [...figures, ...changed.slice(1, 2)];
}

async function besideUpstream(folder: string, options: RepairOptions, kind: string): Promise<Figure[]> {
  const [ours, others] = [await repairPasses(folder, options), await upstreamPasses(folder, options)];
  const names = { peer: 'upstream in Go', unit: 'ms' };
  const what = `${options.services} Services`;
  return [
    { ...names, what: `${what}, first pass`, ours: ours.passMs.slice(0, 1), others: others.passMs.slice(0, 1) },
    { ...names, what: `${what}, ${kind}`, ours: ours.passMs.slice(1), others: others.passMs.slice(1) },
    { ...names, what: `${what}, peak memory`, unit: 'MB', ours: ours.peakMb.slice(-1), others: others.peakMb },
  ];
}
