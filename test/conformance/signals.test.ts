import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { type KbctlProcess, startRun } from '../support/kbctl-process.ts';
import { published, versionsOf } from '../support/kubernetes-service-objects.ts';
import { runningControlPlane } from '../support/running-control-plane.ts';
import { type SilentServer, startSilentServer } from '../support/silent-server.ts';

const NAME = 'demo';
const ADDRESS = '10.9.8.7';
/** Passes may go on for five seconds after the signal. A repair that is not aborted would take longer than this. */
const BOUND_MS = 30_000;

const { apiserver } = runningControlPlane();
let silent: SilentServer;
let folder: string;
const started: KbctlProcess[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'kube-bootstrap-controller-signals-'));
  silent = await startSilentServer();
});

afterEach(async () => {
  await Promise.all(started.splice(0).map((child) => child.end('SIGKILL')));
});

afterAll(async () => {
  await silent?.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Given {
  /** Addresses of the spec beside the one of the API server, with the URL of their probe. */
  readonly others?: Readonly<Record<string, string>>;
  readonly kubeconfigFile?: string;
  /** Of the table. Default: one of its own. */
  readonly data?: string;
}

function startOn({ others = {}, kubeconfigFile = apiserver.kubeconfigFile, data }: Given = {}): KbctlProcess {
  const own = mkdtempSync(join(folder, 'run-'));
  const probes = { [ADDRESS]: `${apiserver.url}/readyz`, ...others };
  const spec = {
    name: NAME,
    mode: 'enforce',
    kubeconfig: { file: 'the one that is named' },
    apiServers: Object.entries(probes).map(([address, url]) => ({ address, probe: { url } })),
    service: { securePort: apiserver.port },
  };
  const specFile = join(own, 'cluster.yml');
  writeFileSync(specFile, JSON.stringify(spec));
  const child = startRun([
    '--kubeconfig',
    kubeconfigFile,
    '-f',
    specFile,
    '--data',
    data ?? join(own, 'table'),
    '--verbose',
  ]);
  started.push(child);
  return child;
}

async function untilPublished(): Promise<void> {
  await eventually(async () => expect(await published(apiserver)).toEqual({ endpoints: [ADDRESS], slice: [ADDRESS] }));
}

test('it ends cleanly, keeps the endpoints, and resumes with its table', async () => {
  const data = join(folder, 'kept');
  const first = startOn({ data });
  await first.untilItPrints(servicePass);
  await untilPublished();
  const before = await versionsOf(apiserver);

  await expectCleanEnd(first, 'SIGTERM');

  expect(first.output()).toContain(`took lease ${ADDRESS}: answered 200`);
  expect(await versionsOf(apiserver)).toEqual(before);

  const second = startOn({ data });
  await second.untilItPrints(servicePass);
  await expectCleanEnd(second, 'SIGINT');

  expect(second.output()).not.toContain(`took lease ${ADDRESS}: `);
  expect(await versionsOf(apiserver)).toEqual(before);
});

describe('during a pass', () => {
  beforeAll(async () => {
    const child = startOn();
    await child.untilItPrints(servicePass);
    await expectCleanEnd(child, 'SIGTERM');
    await untilPublished();
  });

  test.each(['SIGINT', 'SIGTERM'] as const)('%s while a probe hangs changes no endpoint', async (signal) => {
    const before = await versionsOf(apiserver);
    const probes = silent.connections();
    const child = startOn({ others: { '10.9.8.8': `https://${silent.authority}/readyz` } });
    await eventually(() => expect(silent.connections()).toBeGreaterThan(probes));

    await expectCleanEnd(child, signal);

    expect(child.output()).not.toContain('endpoints default/kubernetes: ');
    expect(await versionsOf(apiserver)).toEqual(before);
  });

  test.each(['SIGINT', 'SIGTERM'] as const)('%s while the API server hangs ends it', async (signal) => {
    const before = await versionsOf(apiserver);
    const calls = silent.connections();
    const kubeconfigFile = join(folder, 'silent.kubeconfig');
    writeFileSync(kubeconfigFile, apiserver.kubeconfigYaml.replace(apiserver.url, `https://${silent.authority}`));
    const child = startOn({ kubeconfigFile });
    await eventually(() => expect(silent.connections()).toBeGreaterThan(calls));

    await expectCleanEnd(child, signal);

    expect(await versionsOf(apiserver)).toEqual(before);
  });
});

/** With `--verbose`: a pass of the kubernetes-service loop has ended. */
const servicePass = /kubernetes-service invocation ended passes=1/;

const ENDED = /ended; the endpoints are unchanged\.\n$/;

async function expectCleanEnd(child: KbctlProcess, signal: 'SIGINT' | 'SIGTERM'): Promise<void> {
  const askedAtMs = Date.now();
  const { code } = await child.end(signal);
  const tookMs = Date.now() - askedAtMs;
  expect({ code, output: child.output() }).toEqual({
    code: 0,
    output: expect.stringMatching(ENDED),
  });
  expect(tookMs).toBeLessThan(BOUND_MS);
}
