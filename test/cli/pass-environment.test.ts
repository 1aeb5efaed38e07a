import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Cli } from '../../cli/cli.ts';
import type { OpenTable } from '../../cli/open-table.ts';
import { type PassEnvironmentOptions, passEnvironment } from '../../cli/pass-environment.ts';
import { specIn } from '../support/a-cluster-spec.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const marker = join(folder, 'the-plugin-ran');
const kubeconfig = join(folder, 'kubeconfig');
const CREDENTIAL = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}';
const exec = {
  apiVersion: 'client.authentication.k8s.io/v1',
  interactiveMode: 'Never',
  command: '/bin/sh',
  args: ['-c', `touch ${marker}; echo '${CREDENTIAL}'`],
};

writeFileSync(
  kubeconfig,
  JSON.stringify({
    clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1' } }],
    users: [{ name: 'u', user: { exec } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'c',
  }),
);

beforeEach(() => rmSync(marker, { force: true }));
const spec = specIn(
  JSON.stringify({
    name: 'lab',
    mode: 'observe',
    kubeconfig: { file: kubeconfig },
    apiServers: [{ address: '10.9.8.7' }],
  }),
);

const clock = { nowMs: Date.now, isMeasured: () => true, skewMs: () => 0 };

function aCli(operands: readonly string[], table?: string): Cli {
  return {
    operands,
    options: { output: 'table', ...(table !== undefined && { table }) },
    output: { say: () => undefined },
    signal: new AbortController().signal,
    nowMs: Date.now,
  } as unknown as Cli;
}

async function load(operands: readonly string[], table: string | undefined, options: PassEnvironmentOptions) {
  const cli = aCli(operands, table);
  const { loadKubeconfig, close } = await passEnvironment(cli, { clock } as unknown as OpenTable, options);
  await loadKubeconfig(spec, cli.signal)
    .then((access) => access.authHeaders())
    .catch(() => undefined);
  await close();
}

test('passes reach the cluster of a local run with the kubeconfig of that run', async () => {
  const running = { cluster: 'lab', kubeconfig: join(folder, 'of-the-run') };
  writeFileSync(running.kubeconfig, kubeconfigTo('https://127.0.0.1:2'));
  const printed: string[] = [];
  const cli = { ...aCli([]), output: { say: (line: string) => void printed.push(line) } } as unknown as Cli;
  const { loadKubeconfig, close } = await passEnvironment(cli, { clock, running } as unknown as OpenTable, {});
  expect(await loadKubeconfig(spec, cli.signal)).toMatchObject({ server: 'https://127.0.0.1:2' });
  expect(printed).toEqual([`lab: https://127.0.0.1:2 (kubeconfig from file ${running.kubeconfig}, context there)`]);
  await close();
});

test('a management cluster is reached with its own kubeconfig even if an option names one for the cluster', async () => {
  const own = join(folder, 'of-the-management-cluster');
  writeFileSync(own, kubeconfigTo('https://127.0.0.1:3'));
  const cli = aCli([]);
  const { loadKubeconfig, close } = await passEnvironment(cli, { clock } as unknown as OpenTable, { kubeconfig });
  const management = { ...spec, name: 'service tenants/lab', kubeconfig: { file: own } };
  expect(await loadKubeconfig(management, cli.signal)).toMatchObject({ server: 'https://127.0.0.1:3' });
  await close();
});

describe('the credential plugin of a kubeconfig that a cluster names', () => {
  test.each<[string, boolean, readonly string[], string | undefined, PassEnvironmentOptions]>([
    ['does not run for a cluster that was only found in a table', false, [], undefined, {}],
    ['does not run when another cluster was named', false, ['prod'], undefined, {}],
    ['does not run for a cluster of the functions, even when it was named', false, ['lab'], 'kbc-prod', {}],
    ['runs for a cluster that was named', true, ['lab'], undefined, {}],
    ['runs for a kubeconfig that was named', true, [], 'kbc-prod', { kubeconfig }],
  ])('the credential plugin %s', async (_, runs, operands, table, options) => {
    await load(operands, table, options);
    expect(existsSync(marker)).toBe(runs);
  });
});
