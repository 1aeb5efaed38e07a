import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Etcd, type KubeApiserver, startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { type Handlers, type Invoked, startHandlers } from '../support/handlers.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';
import { published } from '../support/kubernetes-service-objects.ts';
import { ownAddress } from '../support/own-address.ts';
import { freePort } from '../support/server-process.ts';

/** A pass goes to no other host than those of the spec. */
const OWN = ownAddress();
const FIRST = '10.9.8.7';

let etcd: Etcd;
let first: KubeApiserver;
let second: KubeApiserver;
let handlers: Handlers;

/** Every certificate of an API server has this name. */
function writeKubeconfig(ca: string): void {
  const cluster = {
    'certificate-authority-data': Buffer.from(ca).toString('base64'),
    'tls-server-name': 'kubernetes.default.svc',
  };
  writeFileSync(first.kubeconfigFile, kubeconfigTo(first.url, { cluster, user: { token: first.token } }));
}

beforeAll(async () => {
  etcd = await startEtcd();
  const port = await freePort('127.0.0.1', OWN);
  [first, second] = await Promise.all([
    startKubeApiserver({ etcd, port, bindAddress: '127.0.0.1', advertiseAddress: FIRST }),
    startKubeApiserver({ etcd, port, bindAddress: OWN, advertiseAddress: OWN }),
  ]);
  writeKubeconfig(first.ca);
  handlers = await startHandlers({
    kubeconfigFile: first.kubeconfigFile,
    spec: {
      apiServers: [{ address: FIRST, probe: { url: `${first.url}/readyz` } }, { address: OWN }],
      service: { securePort: port },
    },
  });
});

afterAll(async () => {
  await handlers?.close();
  await etcd?.stop();
});

async function tick(): Promise<Invoked> {
  handlers.advance(10_000);
  return handlers.run('kubernetes-service');
}

const addresses = async () => (await published(second)).endpoints;

test("an API server with a certificate of another CA than the kubeconfig's is not used", async () => {
  expect(await tick()).toMatchObject({ errors: [] });
  await first.kill();
  for (let passes = 0; passes < 3; passes += 1) {
    expect(await tick()).toMatchObject({ errors: [expect.stringMatching(/^(Unavailable|NoLiveLease): /)] });
  }
  expect(await addresses()).toEqual([FIRST]);
});

test('the address of the API server in the kubeconfig is removed by the pass through another one of the spec', async () => {
  writeKubeconfig(first.ca + second.ca);
  const passes = [await tick(), await tick(), await tick()];
  expect(passes.flatMap(({ errors }) => errors)).toEqual([]);
  expect(passes.flatMap(({ changes }) => changes)).toContainEqual(expect.stringMatching(`removed ${FIRST}`));
  expect(await published(second)).toEqual({ endpoints: [OWN], slice: [OWN] });
});

test('namespaces are created through the other API server, and the repairs wait for the one in the kubeconfig', async () => {
  expect(await handlers.run('system-namespaces')).toMatchObject({ errors: [] });
  for (const loop of ['cluster-ip-repair', 'node-port-repair'] as const) {
    expect(await handlers.run(loop)).toMatchObject({ errors: [expect.stringMatching(/^Unavailable: /)] });
  }
});

test('the API server in the kubeconfig is published again by the first pass after it answers', async () => {
  await first.restart();
  expect(await tick()).toMatchObject({ errors: [] });
  expect(await addresses()).toEqual([FIRST, OWN].sort());
});
