// Measures a pass of cluster-ip-repair over 50,000 Services of a real API server, beside the original in Go, which is
// built for it: npm run bench:repair. Prints the rows for docs/performance.md.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { build } from 'esbuild';
import { startEtcd, startKubeApiserver } from '../test/support/control-plane.ts';

const SERVICES = 50_000;
const CIDR = '10.0.0.0/16';
const PASSES = 7;
/** The heap of a function with 256 MB. */
const HEAP_MB = 230;

const root = path.join(import.meta.dirname, '..');
const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-repair-'));

function storedService(index: number) {
  const address = `10.0.${1 + Math.floor(index / 250)}.${1 + (index % 250)}`;
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: `service-${index}`,
      namespace: `namespace-${index % 100}`,
      uid: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
      creationTimestamp: '2026-01-02T03:04:05Z',
      labels: { app: `app-${index % 500}`, 'app.kubernetes.io/managed-by': 'Helm' },
    },
    spec: {
      type: 'ClusterIP',
      clusterIP: address,
      clusterIPs: [address],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 8080 }],
      selector: { app: `app-${index % 500}` },
    },
  };
}

function buildOriginal(): string {
  const program = path.join(folder, 'original');
  const module = path.join(root, 'test/conformance/control-plane');
  const env = { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' };
  execFileSync('go', ['build', '-buildvcs=false', '-mod=readonly', '-trimpath', '-o', program, './bench-repair'], {
    cwd: module,
    env,
    stdio: 'inherit',
  });
  return program;
}

async function buildOurs(): Promise<string> {
  const outfile = path.join(folder, 'ours.mjs');
  const banner = { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" };
  const entryPoints = [path.join(root, 'tools/bench-repair-pass.ts')];
  await build({
    entryPoints,
    outfile,
    banner,
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
  });
  return outfile;
}

/** Runs a program that prints its passes and its peak memory. */
function row(what: string, command: string, args: readonly string[]): string {
  const { stdout, stderr, status } = spawnSync(command, args, { encoding: 'utf8' });
  const printed = stdout.trim().split('\n').map(Number);
  const peakKb = printed.pop() ?? Number.NaN;
  if (status !== 0 || printed.length !== PASSES) throw new Error(`${what}: ${stderr}`);
  const [first = Number.NaN] = printed;
  const sorted = printed.slice(1).sort((a, b) => a - b);
  const cells = [what, first, sorted[0], sorted[Math.floor(sorted.length / 2)], peakKb / 1024];
  return `| ${cells.map((cell) => (typeof cell === 'number' ? Math.round(cell) : cell)).join(' | ')} |`;
}

const original = buildOriginal();
const ours = await buildOurs();
const etcd = await startEtcd();
try {
  const apiserver = await startKubeApiserver({ etcd, serviceClusterIPRange: CIDR });
  await etcd.putServices(Array.from({ length: SERVICES }, (_, index) => storedService(index)));
  const args = [apiserver.kubeconfigFile, CIDR, String(PASSES)];
  const measureOurs = () =>
    row('cluster-ip-repair', process.execPath, [`--max-old-space-size=${HEAP_MB}`, ours, ...args]);
  // Warms up: the API server has only just read them from etcd.
  measureOurs();
  const rows = [
    measureOurs(),
    row('the original, protobuf', original, [...args, 'protobuf']),
    row('the original, JSON', original, [...args, 'json']),
    measureOurs(),
    row('the original, protobuf', original, [...args, 'protobuf']),
  ];
  const machine = `${os.cpus()[0]?.model}, ${os.cpus().length} cores, Node ${process.version}`;
  console.log(`${machine}, load ${os.loadavg()[0]?.toFixed(1)}\n`);
  console.log('| what | first pass ms | best of the others ms | median of them ms | peak memory MB |');
  console.log('| --- | --- | --- | --- | --- |');
  for (const line of rows) console.log(line);
} finally {
  await etcd.stop();
  rmSync(folder, { recursive: true });
}
