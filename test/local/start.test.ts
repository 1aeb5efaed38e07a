import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { json, text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { HttpClient } from '../../lib/kubernetes/http-client.ts';
import { readRunning } from '../../local/data-folder.ts';
import { localTable } from '../../local/local-environment.ts';
import { type ListeningStandIn, listen } from '../../local/stand-in/api-servers.ts';
import { kubeconfigOf } from '../../local/stand-in/identity.ts';
import { ENDPOINTS } from '../../local/stand-in/resources.ts';
import type { StandInApiServer } from '../../local/stand-in/stand-in-api-server.ts';
import { startTableServer } from '../../local/table-server.ts';
import { aReview } from '../support/admission-review.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { eventually } from '../support/eventually.ts';
import { callKbctl } from '../support/kbctl-in-process.ts';
import { type KbctlProcess, startRun } from '../support/kbctl-process.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';
import { REPOSITORY } from '../support/repository.ts';
import { freePort } from '../support/server-process.ts';
import { startSilentServer } from '../support/silent-server.ts';
import { IDENTITY, objectsIn, readyStandIn } from '../support/stand-in.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ENDED = /\nended; the endpoints are unchanged\.\n$/;
const ENDED_EMBEDDED = /\nended, and the embedded cluster with it\.\n$/;

const folder = temporaryFolder();

function start(args: readonly string[] = [], env?: Readonly<Record<string, string>>): KbctlProcess {
  const child = startRun(args, env);
  afterThisTest(() => child.end('SIGKILL'));
  return child;
}

async function file(name: string, content: object | string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

/** Returns a spec in which the table allocates. `probe` is the URL at which its one address is probed. */
function specOf(mode: 'observe' | 'enforce', probe: string): object {
  return {
    name: 'demo',
    mode,
    allocator: 'table',
    kubeconfig: { file: 'the one of the command line' },
    apiServers: [{ address: '10.9.8.7', probe: { url: `${probe}/readyz` } }],
  };
}

/** Returns the keys of the cluster's items in the table of that folder. */
async function keysIn(data: string): Promise<string[]> {
  const server = await startTableServer({ key: 'test', path: data });
  const items = await localTable(server.client).list('demo', '');
  await server.close();
  return items.map(({ key }) => key);
}

async function expectCleanEnd(child: KbctlProcess, signal: 'SIGINT' | 'SIGTERM', said = ENDED): Promise<void> {
  const { code } = await child.end(signal);
  expect(child.output()).toMatch(said);
  expect(code).toBe(0);
}

test('npm start runs the loops on an embedded cluster until Ctrl-C, and ignores KUBECONFIG', async () => {
  const elsewhere = await startSilentServer();
  const KUBECONFIG = await file('elsewhere.json', kubeconfigTo(`http://${elsewhere.authority}`));
  const data = join(folder, 'embedded');
  const child = start(['--data', data], { KUBECONFIG });
  await child.untilItPrints(/created endpointslice default\/kubernetes/);
  expect(child.output()).toContain('created endpoints default/kubernetes: 192.0.2.1');
  expect(child.output()).toContain('KUBECONFIG is set but ignored');

  await expectCleanEnd(child, 'SIGINT', ENDED_EMBEDDED);
  expect(await readdir(data)).toEqual([]);
  expect(elsewhere.connections()).toBe(0);
  await elsewhere.close();
});

describe('npm start with the spec of an existing cluster', () => {
  let standIn: StandInApiServer;
  let listening: ListeningStandIn;
  let kubeconfig: string;

  beforeEach(async () => {
    standIn = await readyStandIn();
    listening = await listen(standIn, IDENTITY);
    kubeconfig = await file('kubeconfig.json', kubeconfigOf('it', listening.url, IDENTITY));
  });

  afterEach(() => listening.close());

  const startOn = async (spec: object | string, data: string, kubeconfigFile = kubeconfig) =>
    start(['--kubeconfig', kubeconfigFile, '-f', await file('cluster.yml', spec), '--data', data]);

  test('npm start in mode observe only reports what it would write, and finds the kubeconfig relative to the folder of the spec', async () => {
    const before = await objectsIn(standIn);
    const spec = { ...specOf('observe', listening.url), kubeconfig: { file: 'kubeconfig.json' } };
    const child = start(['-f', await file('cluster.yml', spec), '--data', join(folder, 'observed')]);
    await child.untilItPrints(/would create EndpointSlice default\/kubernetes/);
    await expectCleanEnd(child, 'SIGINT');
    const cluster = `cluster demo at ${listening.url} (kubeconfig ${kubeconfig})`;
    for (const text of [
      cluster,
      'Nothing is written to the cluster.',
      'would save ranges/',
      'would create Endpoints',
    ]) {
      expect(child.output()).toContain(text);
    }
    expect(child.output()).not.toMatch(/ {2}(created|saved) /);
    expect(await objectsIn(standIn)).toEqual(before);
  });

  test('a second npm start with the same data folder uses the table of the first', async () => {
    const data = join(folder, 'kept');
    const first = await startOn(specOf('enforce', listening.url), data);
    await first.untilItPrints(/took lease 10\.9\.8\.7: answered 200[\s\S]*created endpointslice/);
    await expectCleanEnd(first, 'SIGTERM');
    expect(await keysIn(data)).toEqual([
      'masterleases',
      'ranges/serviceips',
      'ranges/servicenodeports',
      'runs/cluster-ip-repair',
      'runs/kubernetes-service',
      'runs/node-port-repair',
      'runs/system-namespaces',
    ]);

    standIn.store.remove(ENDPOINTS, standIn.store.get(ENDPOINTS, 'default', 'kubernetes'));
    const second = await startOn(specOf('enforce', listening.url), data);
    await second.untilItPrints(/created endpoints default\/kubernetes: 10\.9\.8\.7/);
    expect(await readRunning(data)).toMatchObject({ cluster: 'demo', apiServer: listening.url, kubeconfig });
    await expectCleanEnd(second, 'SIGTERM');
    expect(second.output()).not.toContain('took lease');
  });

  test('npm start --admission serves a webhook that refuses requests without the token, and only the user can read the file with the token', async () => {
    const data = join(folder, 'admission');
    const inFolder = (name: string) => join(data, 'admission', name);
    const port = await freePort('127.0.0.1');
    const spec = await file('cluster.yml', specOf('enforce', listening.url));
    const child = start(['--kubeconfig', kubeconfig, '-f', spec, '--data', data, '--admission', `${port}`]);
    // A range is open for allocation after a pass of its repair.
    await child.untilItPrints(/cluster-ip-repair +saved ranges/);
    const { webhooks } = parse(await readFile(inFolder('webhook.yaml'), 'utf8'));
    const { url, caBundle } = webhooks[0].clientConfig;
    const ca = Buffer.from(caBundle, 'base64').toString();
    const client = new HttpClient(new URL(url).origin, { tls: { ca, rejectUnauthorized: true } });
    const token = (await readFile(inFolder('token'), 'utf8')).trim();
    expect((await stat(inFolder('token'))).mode & 0o777).toBe(0o600);
    expect(await readFile(inFolder('kubeconfig.yaml'), 'utf8')).toContain(inFolder('token'));
    expect(await readFile(inFolder('config.yaml'), 'utf8')).toContain(inFolder('kubeconfig.yaml'));

    const review = (bearer: string) => {
      const authorization = `Bearer ${bearer}`;
      const headers = { 'content-type': 'application/json', connection: 'keep-alive', authorization };
      const body = JSON.stringify(aReview());
      const request = { method: 'POST', path: new URL(url).pathname, headers, body } as const;
      return client.request(request, new AbortController().signal);
    };

    const refused = await review('wrong');
    expect({ status: refused.status, body: await text(Readable.from(refused.body)) }).toEqual({
      status: 401,
      body: expect.stringContaining('Send the key of this run.'),
    });
    const reply = await review(token);
    expect(await json(Readable.from(reply.body))).toMatchObject({
      response: { allowed: true, patch: expect.any(String) },
    });
    // The timeout is longer than the time for which an API server keeps an idle connection. Otherwise, the API server could send
    // a review on a connection that this server is closing.
    expect(reply.headers).toMatchObject({ 'keep-alive': 'timeout=100' });
    client.destroy();
    await expectCleanEnd(child, 'SIGTERM');
  });

  test('npm start ends at once at a second Ctrl-C, although the API server hangs', async () => {
    const silent = await startSilentServer();
    const hanging = await file('hanging.json', kubeconfigTo(`http://${silent.authority}`));
    const child = await startOn(specOf('enforce', listening.url), join(folder, 'hanging'), hanging);
    await eventually(() => expect(silent.connections()).toBeGreaterThan(0));
    const end = child.end('SIGINT');
    await child.untilItPrints(/ending: running passes have 5 s to finish; press Ctrl-C again to end at once/);
    let ended = false;
    void end.then(() => {
      ended = true;
    });
    await eventually(() => {
      if (!ended) void child.end('SIGINT');
      expect(ended).toBe(true);
    });
    expect(await end).toMatchObject({ code: 130 });
    expect(await readRunning(join(folder, 'hanging'))).toBeUndefined();
    expect(await readdir(join(folder, 'hanging'))).not.toContain('running.json');
    await silent.close();
  });

  const withSpec = async (fields: object, ...options: string[]) => {
    const spec = await file('cluster.yml', { ...specOf('observe', listening.url), ...fields });
    return ['-f', spec, '--data', join(folder, 'never'), ...options];
  };

  test.each<[string, () => Promise<string[]> | string[], RegExp]>([
    [
      'a port for the webhook that is in use',
      () => withSpec({ kubeconfig: { file: 'kubeconfig.json' } }, '--admission', new URL(listening.url).port),
      /^error: Port \d+ cannot be used \(EADDRINUSE\): name a free one with --admission\.$/m,
    ],
    [
      'a kubeconfig that is only for the functions',
      () => withSpec({ kubeconfig: { ssm: '/kbc/lab' } }),
      /names a kubeconfig for the functions: name a file/,
    ],
    [
      'a spec that does not exist',
      () => ['-f', 'nowhere.yml', '--kubeconfig', 'k'],
      /^error: The spec nowhere\.yml cannot be read \(ENOENT\).*\n$/,
    ],
    [
      'a kubeconfig that does not exist',
      () => ['-f', 'cluster.example.yml', '--kubeconfig', '/nowhere'],
      /^error: kubeconfig \/nowhere: cannot read \/nowhere \(ENOENT\)/,
    ],
  ])('npm start refuses %s', async (_, args, message) => {
    const called = await callKbctl(['run', ...(await args())], { cwd: REPOSITORY, env: {} });
    expect(called).toEqual({ code: 3, stdout: '', stderr: expect.stringMatching(message) });
  });
});
