import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { LOCAL_TABLE, localTable } from '../../local/local-environment.ts';
import { startTableServer } from '../../local/table-server.ts';
import { specIn } from '../support/a-cluster-spec.ts';
import { findBinaries } from '../support/binaries.ts';
import { eventually } from '../support/eventually.ts';
import { type KbctlProcess, startKbctl } from '../support/kbctl-process.ts';
import { ENDPOINTS_PATH, published } from '../support/kubernetes-service-objects.ts';
import { running } from '../support/running.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { runningControlPlane } from './running-control-plane.ts';

const ADDRESS = '10.9.8.7';

const { apiserver } = runningControlPlane();
let processes: KbctlProcess[] = [];
// The processes end before their table server.
afterAll(() => Promise.all(processes.map((one) => one.end('SIGKILL'))));
const server = running(() => startTableServer({ key: 'test' }));
let table: KeyValueTable;
const folder = temporaryFolder();

beforeAll(async () => {
  table = localTable(server.client);
  const spec = {
    name: 'demo',
    mode: 'enforce',
    kubeconfig: { file: apiserver.kubeconfigFile },
    apiServers: [{ address: ADDRESS, probe: { url: `${apiserver.url}/readyz` } }],
    service: { securePort: apiserver.port },
  };
  await registerCluster(table, specIn(JSON.stringify(spec)));
});

function start(): KbctlProcess {
  const env = { AWS_REGION: 'local', AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'local' };
  return startKbctl(['run', '--table', LOCAL_TABLE, '--endpoint-url', server.endpoint], { cwd: folder, env });
}

/** Returns the process that claimed the last tick of kubernetes-service. */
async function lastToClaim(): Promise<KbctlProcess> {
  const claim = (await table.get('#ticks', 'kbctl-run/kubernetes-service'))?.value as { readonly by: string };
  const found = processes.find(({ child }) => claim.by.endsWith(`/${child.pid}`));
  if (found === undefined) throw new Error(`${claim.by} is no process that runs`);
  return found;
}

test('two processes share the ticks of a table; if one is killed, the remaining process runs all ticks, even if its own standard output is closed', async () => {
  processes = [start(), start()];
  await Promise.all(processes.map((one) => one.untilItPrints(/serving the clusters of table/)));
  await eventually(async () => expect(await published(apiserver)).toMatchObject({ endpoints: [ADDRESS] }));

  const killed = await lastToClaim();
  await killed.end('SIGKILL');
  processes = processes.filter((one) => one !== killed);
  await apiserver.request('DELETE', ENDPOINTS_PATH);
  await eventually(async () => expect(await published(apiserver)).toMatchObject({ endpoints: [ADDRESS] }));

  const survivor = await lastToClaim();
  await survivor.untilItPrints(/"message":"pass succeeded".*"loop":"kubernetes-service".*created endpoints/);

  survivor.child.stdout?.destroy();
  await apiserver.request('DELETE', ENDPOINTS_PATH);
  await eventually(async () => expect(await published(apiserver)).toMatchObject({ endpoints: [ADDRESS] }));
  const stderr = expect.stringMatching(/ended; the endpoints are unchanged\.\n$/);
  expect(await survivor.end('SIGTERM')).toMatchObject({ code: 0, stderr });
});

test('kubectl applies the kustomize base, and the API server accepts every object of the base', () => {
  const { kubectl = 'kubectl' } = findBinaries();
  const base = join(import.meta.dirname, '../../deploy/kubernetes/base');
  const words = ['apply', '--namespace', 'default', '--dry-run=server', '--validate=strict', '-k', base];
  const env = { HOME: folder, KUBECONFIG: apiserver.kubeconfigFile };
  const printed = execFileSync(kubectl, words, { env, encoding: 'utf8' });
  const policies = ['poddisruptionbudget.policy', 'networkpolicy.networking.k8s.io'];
  for (const kind of ['serviceaccount', 'service', 'deployment.apps', ...policies]) {
    expect(printed).toContain(`${kind}/kube-bootstrap-controller created (server dry run)`);
  }
});
