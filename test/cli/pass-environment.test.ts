import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from '@jest/globals';
import type { Cli } from '../../cli/cli.ts';
import { type OpenTable, openTable } from '../../cli/open-table.ts';
import { type PassEnvironmentOptions, passEnvironment } from '../../cli/pass-environment.ts';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';
import { serve } from '../support/serve.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const marker = join(folder, 'the-plugin-ran');
const kubeconfig = join(folder, 'kubeconfig');
const CREDENTIAL = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}';
const args = ['-c', `touch ${marker}; echo '${CREDENTIAL}'`];
const apiVersion = 'client.authentication.k8s.io/v1';
const exec = { apiVersion, interactiveMode: 'Never', command: '/bin/sh', args };
const content = {
  clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1' } }],
  users: [{ name: 'u', user: { exec } }],
  contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  'current-context': 'c',
};
writeFileSync(kubeconfig, JSON.stringify(content));

beforeEach(() => rmSync(marker, { force: true }));
const spec = aClusterSpec({ name: 'lab', kubeconfig: { file: kubeconfig } });
const clock = { nowMs: Date.now, isMeasured: () => true, skewMs: () => 0 };
const { signal } = new AbortController();

async function load(of: ClusterSpec, operands: readonly string[], options: PassEnvironmentOptions, rest: object = {}) {
  const printed: string[] = [];
  const { table, running } = { table: undefined, running: undefined, ...rest };
  const output = { say: (line: string) => void printed.push(line) };
  const cli = { operands, options: { output: 'table', table }, output, signal, nowMs: Date.now } as unknown as Cli;
  const opened = { clock, running } as unknown as OpenTable;
  await using passes = await passEnvironment(cli, opened, options);
  return { access: await passes.loadKubeconfig(of, signal), printed };
}

test('while npm start runs, passes for its cluster connect with the kubeconfig of that run', async () => {
  const running = { cluster: 'lab', kubeconfig: join(folder, 'of-the-run') };
  writeFileSync(running.kubeconfig, kubeconfigTo('https://127.0.0.1:2'));
  const { access, printed } = await load(spec, [], {}, { running });
  expect(access).toMatchObject({ server: 'https://127.0.0.1:2' });
  expect(printed).toEqual([`lab: https://127.0.0.1:2 (kubeconfig ${running.kubeconfig}, context there)`]);
});

test('passes connect to a management cluster with its own kubeconfig even if an option specifies the kubeconfig of the tenant cluster', async () => {
  const own = join(folder, 'of-the-management-cluster');
  writeFileSync(own, kubeconfigTo('https://127.0.0.1:3'));
  const management = { ...spec, name: 'service tenants/lab', kubeconfig: { file: own } };
  const { access } = await load(management, [], { kubeconfig });
  expect(access).toMatchObject({ server: 'https://127.0.0.1:3' });
});

test('an empty --context is refused, and is not replaced by the current context', async () => {
  const file = join(folder, 'with-a-current-context');
  writeFileSync(file, kubeconfigTo('https://127.0.0.1:4'));
  const loaded = load(spec, [], { kubeconfig: file, context: '' });
  await expect(loaded).rejects.toMatchObject({ code: 'BadKubeconfig' });
});

test.each<[string, boolean, readonly string[], string | undefined, PassEnvironmentOptions]>([
  ['does not run for a cluster that the user did not name in the command', false, [], undefined, {}],
  ['does not run if the user named another cluster in the command', false, ['prod'], undefined, {}],
  ['does not run for a cluster in a table in AWS, even if it is named', false, ['lab'], 'kbc-prod', {}],
  ['runs for a cluster that the user named in the command', true, ['lab'], undefined, {}],
  ['runs for a kubeconfig that the user named in an option', true, [], 'kbc-prod', { kubeconfig }],
])('the credential plugin %s', async (_, runs, operands, table, options) => {
  const loaded = load(spec, operands, options, { table });
  await loaded.then(({ access }) => access.authHeaders()).catch(() => undefined);
  expect(existsSync(marker)).toBe(runs);
});

Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'none', AWS_SECRET_ACCESS_KEY: 'none' });

const on = (AttributeName: string) => ({ TimeToLiveDescription: { TimeToLiveStatus: 'ENABLED', AttributeName } });
const refused = (code: string) => ({ __type: `com.amazon.coral.service#${code}`, message: 'refused' });

test.each([
  { reply: on('ttl'), advice: undefined },
  { reply: on('expires'), advice: /TTL on its attribute "ttl" is off/ },
  { reply: { TimeToLiveDescription: { TimeToLiveStatus: 'DISABLED' } }, advice: /is off: turn it on/ },
  { reply: refused('UnknownOperationException'), advice: /has no TTL: expired items stay/ },
  { reply: refused('AccessDeniedException'), advice: undefined },
])('if the database answers $reply when asked for its TTL, the advice is $advice', async ({ reply, advice }) => {
  const database = await serve((_, response) => {
    response.writeHead('__type' in reply ? 400 : 200, { 'content-type': 'application/x-amz-json-1.0' });
    response.end(JSON.stringify(reply));
  });
  afterThisTest(database.close);
  const options = { table: 'clusters', region: 'eu-test-1', endpointUrl: database.url };
  await using opened = await openTable(options, [], new AbortController().signal, () => 0);
  const found = await opened.adviceOnTtl();
  if (advice === undefined) expect(found).toBeUndefined();
  else expect(found).toMatch(advice);
});
