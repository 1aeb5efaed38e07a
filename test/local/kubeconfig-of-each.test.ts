import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { readRunRecord } from '../../lib/table/run-records.ts';
import { createTable } from '../../local/create-table.ts';
import { kubeconfigOfEach, LOCAL_TABLE, localEnvironment } from '../../local/local-environment.ts';
import { LOOP_HANDLERS } from '../../local/loop-handlers.ts';
import { type ListeningStandIn, listen } from '../../local/stand-in/api-servers.ts';
import { kubeconfigOf } from '../../local/stand-in/identity.ts';
import { ENDPOINTS } from '../../local/stand-in/resources.ts';
import type { StandInApiServer } from '../../local/stand-in/stand-in-api-server.ts';
import { tableServerClient } from '../../local/table-client.ts';
import { startTableServer, type TableServer } from '../../local/table-server.ts';
import { specIn } from '../support/a-cluster-spec.ts';
import { recordingTelemetry } from '../support/recording-telemetry.ts';
import { IDENTITY, readyStandIn } from '../support/stand-in.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

interface Cluster {
  readonly standIn: StandInApiServer;
  readonly listening: ListeningStandIn;
}

const folder = temporaryFolder();
let tableServer: TableServer;
let started: Cluster;
let beside: Cluster;

const cluster = async (): Promise<Cluster> => {
  const standIn = await readyStandIn();
  return { standIn, listening: await listen(standIn, IDENTITY) };
};

beforeAll(async () => {
  tableServer = await startTableServer({ key: 'test' });
  [started, beside] = await Promise.all([cluster(), cluster()]);
});

afterAll(async () => {
  await Promise.all([started.listening.close(), beside.listening.close(), tableServer.close()]);
});

test('a local run also runs passes for a cluster that was applied beside its own, and reaches each at its own API server', async () => {
  const file = join(folder, 'beside.kubeconfig');
  await writeFile(file, kubeconfigOf('beside', beside.listening.url, IDENTITY));
  const specOf = (name: string, address: string, { listening: { url } }: Cluster, kubeconfig: object) =>
    specIn(
      JSON.stringify({ name, mode: 'enforce', kubeconfig, apiServers: [{ address, probe: { url: `${url}/readyz` } }] }),
    );
  const own = specOf('started', '192.0.2.1', started, { file: 'not this one' });
  const client = tableServerClient(tableServer);
  await createTable(client, LOCAL_TABLE);
  const loadKubeconfig = kubeconfigOfEach({
    spec: own,
    loadKubeconfig: () => parseKubeconfig(kubeconfigOf('started', started.listening.url, IDENTITY), 'that was named'),
  });
  const { environment, close } = localEnvironment({ client, loadKubeconfig, telemetry: recordingTelemetry });
  const table = environment.table(new AbortController().signal);
  await registerCluster(table, own);
  await registerCluster(table, specOf('beside', '192.0.2.9', beside, { file }));

  const scheduled = { 'detail-type': 'Scheduled Event', time: new Date().toISOString() };
  await LOOP_HANDLERS['kubernetes-service'](scheduled, { environment, getRemainingTimeInMillis: () => 60_000 });

  const published = ({ standIn }: Cluster) => standIn.store.find(ENDPOINTS, 'default', 'kubernetes');
  const only = (ip: string) => ({ subsets: [{ addresses: [{ ip }] }] });
  expect(published(started)).toMatchObject(only('192.0.2.1'));
  expect(published(beside)).toMatchObject(only('192.0.2.9'));
  expect(await readRunRecord(table, 'beside', 'kubernetes-service')).toMatchObject({
    record: { outcome: 'succeeded' },
  });
  await close();
  client.destroy();
});

test('a local run executes no plugin of a cluster that another writer registered in its table', async () => {
  const marker = join(folder, 'the-plugin-ran');
  const file = join(folder, 'hostile.kubeconfig');
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: '/bin/sh', args: ['-c', `touch ${marker}`] };
  const content = JSON.parse(kubeconfigOf('hostile', started.listening.url, IDENTITY)) as Record<string, unknown>;
  await writeFile(file, JSON.stringify({ ...content, users: [{ name: 'hostile', user: { exec } }] }));
  const apiServers = [{ address: '192.0.2.8' }];
  const hostile = specIn(JSON.stringify({ name: 'hostile', mode: 'enforce', kubeconfig: { file }, apiServers }));
  const load = kubeconfigOfEach({
    spec: { name: 'started' },
    loadKubeconfig: () => Promise.reject(new Error('not it')),
  });

  await expect(load(hostile, new AbortController().signal)).rejects.toMatchObject({ code: 'BadKubeconfig' });
  expect(existsSync(marker)).toBe(false);
});
