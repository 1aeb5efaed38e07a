import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from '@jest/globals';
import { loadKubeconfigFile, parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { readCluster } from '../../lib/table/clusters.ts';
import { findRunning, openRunning, readRunning } from '../../local/data-folder.ts';
import type { StartOptions } from '../../local/local-cluster.ts';
import { kubeconfigOfEach, localTable } from '../../local/local-environment.ts';
import { openCluster } from '../../local/open-cluster.ts';
import { type RunHooks, run } from '../../local/run.ts';
import { kubeconfigOf } from '../../local/stand-in/identity.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { eventually } from '../support/eventually.ts';
import { beginKbctl, callKbctl } from '../support/kbctl-in-process.ts';
import { requestLocal } from '../support/request-local.ts';
import { IDENTITY } from '../support/stand-in.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

let root: string;
let data: string;

beforeEach(() => {
  root = temporaryFolder();
  data = join(root, 'data');
});

/** Starts a run in this process, and waits until it prints a line that matches. */
async function begin(until: RegExp, hooks: Partial<RunHooks> = {}, options: StartOptions = {}) {
  const printed: string[] = [];
  const ended = new AbortController();
  const write = (line: string) => void printed.push(line);
  const paint = (_style: unknown, text: string) => text;
  const running = run({ dataFolder: data, ...options }, ended.signal, { hints: [], paint, ...hooks, write });
  let failure: unknown;
  running.catch((error: unknown) => {
    failure = error;
  });
  const end = () => {
    ended.abort();
    return running;
  };
  afterThisTest(() => end().catch(() => undefined));
  await eventually(() => {
    if (failure !== undefined) return;
    expect(printed.join('\n')).toMatch(until);
  });
  if (failure !== undefined) throw failure;
  return { printed, end };
}

const ALL_DONE = /created endpointslice/;

test('other commands find the process and the table of a run, and find the API server of the run in the kubeconfig of the spec', async () => {
  const { end } = await begin(ALL_DONE);
  const running = await readRunning(data);
  expect(running).toMatchObject({ schema: 1, pid: process.pid, cluster: 'embedded', folder: data });
  expect(await findRunning(root)).toEqual([running]);

  const { client } = await openRunning(data);
  const registered = await readCluster(localTable(client), 'embedded');
  const kubeconfig = registered?.spec.kubeconfig;
  const file = kubeconfig !== undefined && 'file' in kubeconfig ? kubeconfig.file : '';
  expect(file).toBe(join(data, 'kubeconfig'));
  const { server } = await loadKubeconfigFile(file);
  expect(running).toMatchObject({ apiServer: server, kubeconfig: file });
  expect((await requestLocal(`${server}/readyz`)).status).toBe(200);
  client.destroy();

  await end();
  expect(await readdir(data)).toEqual([]);
});

test('kbctl doctor prints no warning about the cluster of a local run', async () => {
  data = join(root, '.kbctl', 'embedded');
  const { end } = await begin(ALL_DONE);
  const ran = await callKbctl(['doctor'], { cwd: root, env: {} });
  expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining('api server: https://127.0.0.1') });
  expect(ran.stdout.split('\n').filter((line) => /^[!✗]/.test(line))).toEqual([]);
  await end();
});

test('a second run in the same folder is refused, and the first continues', async () => {
  await begin(ALL_DONE, { servePage: async () => ({ url: 'http://127.0.0.1:8080/', close: async () => undefined }) });
  const running = await readRunning(data);
  await expect(begin(ALL_DONE)).rejects.toMatchObject({
    exitCode: 3,
    message: `embedded is already running (process ${process.pid}, since ${running?.startedAt}, and its status page is http://127.0.0.1:8080/). End that one with Ctrl-C first, or name another folder with --data.`,
  });
  expect(await readRunning(data)).toEqual(running);
  expect((await readFile(join(data, 'kubeconfig'), 'utf8')).includes(running?.apiServer ?? 'none')).toBe(true);
});

test('a command with a cluster name uses the local run of that cluster, and "kbctl cluster delete" reports that the local run of the deleted cluster ends', async () => {
  const cwd = join(root, 'several');
  data = join(cwd, '.kbctl', 'embedded');
  await begin(ALL_DONE);
  data = join(cwd, '.kbctl', 'demo');
  await begin(/demo: +4 Services/, {}, { demo: true });
  const kbctl = (...words: string[]) => callKbctl(words, { cwd, env: {} });
  const stderr = expect.stringContaining('Several local runs are active: choose one with --data, or name its cluster');
  expect(await kbctl('status')).toMatchObject({ code: 2, stderr });
  expect(await kbctl('status', 'demo')).toMatchObject({ stdout: expect.stringMatching(/^demo/) });
  expect(await kbctl('cluster', 'delete', 'demo')).toMatchObject({
    stdout: `demo: deleted; its endpoints and its items in the table stay unchanged, and its local run (process ${process.pid}) ends\n`,
  });
});

test('the commands that a run prints work without changes, even in another folder', async () => {
  const running = beginKbctl(['run', '--no-page', '--data', data], { cwd: root, env: {} });
  await running.untilItPrints(ALL_DONE);
  expect(running.stdout()).toMatch(/echo '\{.*\}' \| kubectl --kubeconfig \S+ apply -f - /);
  expect(running.stdout()).toMatch(/node \S+ status --data \S*data\n/);
  await running.end('SIGINT');
});

test('when the time of --timeout expires, a run ends in the same way as after Ctrl-C', async () => {
  const ended = await callKbctl(['run', '--no-page', '--data', data, '--timeout', '2s'], { cwd: root, env: {} });
  expect(ended).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/\nending: .*\nended, and the embedded cluster/),
  });
});

test('the demo prints the shortened intervals and its events', async () => {
  const { printed } = await begin(/demo: +4 Services of a shop are created/, {}, { demo: true });
  const text = printed.join('\n');
  expect(text).toContain('This is a demo: ');
  expect(text).toContain('run every 15 s');
  expect(text).toContain('created endpoints default/kubernetes: 192.0.2.1 192.0.2.2 192.0.2.3');
  expect(await readRunning(data)).toMatchObject({ cluster: 'demo' });
});

test('a run prints the URL of its status page near the top, other commands find this URL, and the end of the run closes the page', async () => {
  const calls: string[] = [];
  const servePage: RunHooks['servePage'] = async (environment, cluster) => {
    const registered = await readCluster(environment.table(new AbortController().signal), cluster);
    calls.push(`${registered?.spec.name} ${typeof environment.nowMs()}`);
    return { url: 'http://127.0.0.1:8080/', close: async () => void calls.push('closed') };
  };
  const { printed, end } = await begin(ALL_DONE, { servePage, hints: ['node cli/kbctl.mjs status'] });
  expect(printed[1]).toBe('Status page: http://127.0.0.1:8080/');
  expect(printed).toContain('  node cli/kbctl.mjs status');
  expect(await readRunning(data)).toMatchObject({ page: 'http://127.0.0.1:8080/' });
  await end();
  expect(calls).toEqual(['embedded number', 'closed']);
});

test('if the status page cannot be served, the run ends before its first pass', async () => {
  const servePage = () => Promise.reject(new Error('its port is in use'));
  await expect(begin(ALL_DONE, { servePage })).rejects.toThrow('its port is in use');
  expect(await readRunning(data)).toBeUndefined();
});

const folder = temporaryFolder();
const { signal } = new AbortController();
const kubeconfigTo = (server: string) => kubeconfigOf('a-cluster', server, IDENTITY);

/** Loads the kubeconfig of a cluster in a run that was started for the cluster "started". */
const load = kubeconfigOfEach('started', () =>
  parseKubeconfig(kubeconfigTo('https://192.0.2.1:6443'), 'that was named'),
);

test('if the spec changes, a local run reads the kubeconfig file of the new spec, unless the command line specifies a file', async () => {
  const own = temporaryFolder();
  const file = async (name: string, content: string) => {
    await writeFile(join(own, name), content);
    return join(own, name);
  };
  const first = await file('first.kubeconfig', kubeconfigTo('https://192.0.2.1:6443'));
  await file('second.kubeconfig', kubeconfigTo('https://192.0.2.2:6443'));
  const fields = { mode: 'observe', kubeconfig: { file: 'first.kubeconfig' }, apiServers: [{ address: '10.9.8.7' }] };
  const specFile = await file('cluster.yml', JSON.stringify({ name: 'demo', ...fields }));
  const terminal = { signal, say: () => undefined };
  const serverOf = async (kubeconfigFile?: string) => {
    const real = { specFile, ...(kubeconfigFile !== undefined && { kubeconfigFile }) };
    await using opened = await openCluster({ real, dataFolder: join(own, 'data') }, terminal);
    const changed = { ...opened.spec, kubeconfig: { file: 'second.kubeconfig' } };
    return (await opened.loadKubeconfig(changed, signal)).server;
  };
  expect([await serverOf(), await serverOf(first)]).toEqual(['https://192.0.2.2:6443', 'https://192.0.2.1:6443']);
});

test('if another writer registers a cluster in the table of a local run, the run executes no plugin from the kubeconfig of that cluster', async () => {
  const marker = join(folder, 'the-plugin-ran');
  const file = join(folder, 'hostile.kubeconfig');
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: '/bin/sh', args: ['-c', `touch ${marker}`] };
  const content = JSON.parse(kubeconfigTo('https://192.0.2.9:6443'));
  content.users[0].user = { exec };
  await writeFile(file, JSON.stringify(content));

  const loading = load(aClusterSpec({ name: 'hostile', kubeconfig: { file } }), signal);

  const message = expect.stringContaining('a plugin runs only with --kubeconfig of kbctl');
  await expect(loading).rejects.toMatchObject({ code: 'BadKubeconfig', message });
  expect(existsSync(marker)).toBe(false);
});
