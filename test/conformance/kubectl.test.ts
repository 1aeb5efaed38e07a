import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { listen } from '../../local/stand-in/api-servers.ts';
import { kubeconfigOf } from '../../local/stand-in/identity.ts';
import { findBinaries, KUBERNETES_VERSION } from '../support/binaries.ts';
import { startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import type { Ran } from '../support/kbctl-process.ts';
import { running } from '../support/running.ts';
import { IDENTITY, readyStandIn } from '../support/stand-in.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const { kubectl } = findBinaries();
const folder = temporaryFolder();

async function openStandIn() {
  const { url, close } = await listen(await readyStandIn(), IDENTITY);
  const kubeconfigFile = join(folder, 'stand-in');
  await writeFile(kubeconfigFile, kubeconfigOf('stand-in', url, IDENTITY));
  return { kubeconfigFile, close };
}

async function openReal() {
  const etcd = await startEtcd();
  const { kubeconfigFile } = await startKubeApiserver({ etcd });
  return { kubeconfigFile, close: etcd.close };
}

/** Runs kubectl with its own home folder, because kubectl caches the API discovery there. */
function run(kubeconfigFile: string, words: readonly string[]): Promise<Ran> {
  if (kubectl === undefined) throw new Error('there is no kubectl: build-control-plane.sh builds it with Go');
  const env = { HOME: folder, KUBECONFIG: kubeconfigFile, TZ: 'UTC' };
  return new Promise((resolve) => {
    execFile(kubectl, words, { cwd: folder, env, timeout: 30_000 }, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : 1, stdout, stderr });
    });
  });
}

function service(ports: readonly object[]): string {
  const metadata = { name: 'web', labels: { app: 'web' } };
  return JSON.stringify({ apiVersion: 'v1', kind: 'Service', metadata, spec: { selector: { app: 'web' }, ports } });
}

beforeAll(async () => {
  const [http, https, admin] = [80, 443, 8080].map((port) => ({ name: `port-${port}`, port }));
  await writeFile(join(folder, 'service.json'), service([http, https] as object[]));
  await writeFile(join(folder, 'changed.json'), service([https, admin] as object[]));
});

describe.each([
  { name: 'the stand-in API server', open: openStandIn },
  { name: 'a real kube-apiserver', open: openReal },
])('kubectl with $name', ({ open }) => {
  const server = running(open);

  // The commands run in order, as one session.
  test.each([
    { command: 'create -f service.json --save-config', prints: /^service\/web created$/ },
    {
      command: 'get services web',
      prints:
        /^NAME +TYPE +CLUSTER-IP +EXTERNAL-IP +PORT\(S\) +AGE\nweb +ClusterIP +10\.0\.0\.\d+ +<none> +80\/TCP,443\/TCP +\d+s$/,
    },
    { command: 'get services web -o yaml', prints: /^apiVersion: v1\nkind: Service\n.*\n {2}type: ClusterIP\b/s },
    { command: 'get all -o name', prints: /^(service\/kubernetes\n)?service\/web$/ },
    { command: 'apply -f changed.json', prints: /^service\/web configured$/ },
    { command: 'apply -f changed.json', prints: /^service\/web unchanged$/ },
    { command: 'get service web --no-headers', prints: / 443\/TCP,8080\/TCP +\d+s$/ },
    { command: 'label service web tier=front', prints: /^service\/web labeled$/ },
    { command: 'get service -l tier=front -o name', prints: /^service\/web$/ },
    {
      command: 'describe service web',
      prints: /^Name: +web\n.*Labels: +app=web\n +tier=front\n.*\nPort: +port-443 +443\/TCP\n/s,
    },
    {
      command: 'get namespaces,servicecidrs',
      prints: /namespace\/default +Active.*servicecidr.*\/kubernetes +/s,
    },
    { command: 'get endpoints,endpointslices,events -A', prints: /^/ },
    {
      command: 'api-resources --api-group=discovery.k8s.io',
      prints: /\nendpointslices +discovery\.k8s\.io\/v1 +true +EndpointSlice$/,
    },
    { command: 'version', prints: new RegExp(`\nServer Version: (v1.36.3|${KUBERNETES_VERSION})`) },
    { command: 'delete service web', prints: /^service "web" deleted/ },
    { command: 'get service web', fails: /^Error from server \(NotFound\): services "web" not found$/ },
    { command: 'get flowers', fails: /^error: the server doesn't have a resource type "flowers"$/ },
  ])('kubectl $command prints the expected result', async ({ command, prints, fails }) => {
    const { code, stdout, stderr } = await run(server.kubeconfigFile, command.split(' '));
    if (fails !== undefined)
      expect({ code, stderr: stderr.trim() }).toEqual({ code: 1, stderr: expect.stringMatching(fails) });
    else
      expect({ code, stderr, stdout: stdout.trim() }).toMatchObject({ code: 0, stdout: expect.stringMatching(prints) });
  });
});
