import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Etcd, type KubeApiserver, kubeconfig, startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { type Handlers, type Invoked, startHandlers } from '../support/handlers.ts';
import { published, versionsOf } from '../support/kubernetes-service-objects.ts';
import { freePort } from '../support/server-process.ts';

const LOOP = 'kubernetes-service';
const TICK_MS = 10_000;
const [FIRST, SECOND] = ['10.9.8.7', '10.9.8.8'] as const;

let etcd: Etcd;
let first: KubeApiserver;
let second: KubeApiserver;
let handlers: Handlers;

/*
 * In order, each from where the one before ended: what is tested is how the endpoints of one control plane follow its
 * API servers, by real time.
 */
beforeAll(async () => {
  etcd = await startEtcd();
  const port = await freePort('127.0.0.1', '127.0.0.2');
  // While one shuts down it goes on serving for this long, and its /readyz says so.
  const common = { etcd, port, extraArgs: ['--shutdown-delay-duration=60s'] };
  [first, second] = await Promise.all([
    startKubeApiserver({ ...common, bindAddress: '127.0.0.1', advertiseAddress: FIRST }),
    startKubeApiserver({ ...common, bindAddress: '127.0.0.2', advertiseAddress: SECOND }),
  ]);
  const { kubeconfigFile, url, token } = first;
  writeFileSync(kubeconfigFile, kubeconfig({ url, ca: first.ca + second.ca, token }));
  handlers = await startHandlers({
    kubeconfigFile,
    spec: {
      apiServers: [
        { address: FIRST, probe: { url: `${first.url}/readyz` } },
        { address: SECOND, probe: { url: `${second.url}/readyz` } },
      ],
      service: { securePort: port },
    },
  });
});

afterAll(async () => {
  await handlers?.close();
  await etcd?.stop();
});

let nextTickAtMs = Date.now();

async function untilNextTick(): Promise<void> {
  await sleep(Math.max(0, nextTickAtMs - Date.now()));
}

/** Ten seconds after the last one. */
async function tick(): Promise<Invoked> {
  await untilNextTick();
  nextTickAtMs = Date.now() + TICK_MS;
  return handlers.tick(LOOP);
}

/** Ticks until this is published, `atMost` so many times. */
async function tickUntilPublished(addresses: readonly string[], atMost: number): Promise<Invoked> {
  const expected = { endpoints: addresses, slice: addresses };
  for (let ticks = 1; ; ticks++) {
    const told = await tick();
    expect(told.summary).toEqual({ passes: 1, failed: 0, skipped: 0 });
    const now = await published(first);
    if (ticks === atMost || isDeepStrictEqual(now, expected)) {
      expect(now).toEqual(expected);
      return told;
    }
  }
}

/** What etcd holds of Endpoints and EndpointSlice, byte for byte. */
function stored(): Promise<(Buffer | undefined)[]> {
  const keys = ['services/endpoints', 'endpointslices'].map((kind) => `/registry/${kind}/default/kubernetes`);
  return Promise.all(keys.map((key) => etcd.get(key)));
}

test('both are published by the first tick', async () => {
  expect(await published(first)).toEqual({ endpoints: [], slice: [] });

  const told = await tickUntilPublished([FIRST, SECOND], 1);

  expect(told.changes).toEqual(
    expect.arrayContaining([
      `took lease ${FIRST}: answered 200`,
      `took lease ${SECOND}: answered 200`,
      `created endpoints default/kubernetes: ${FIRST} ${SECOND}`,
      `created endpointslice default/kubernetes: ${FIRST} ${SECOND}`,
    ]),
  );
});

test('a tick that finds nothing to do writes nothing', async () => {
  const before = await versionsOf(first);

  expect(await tick()).toMatchObject({ summary: { passes: 1, failed: 0 }, changes: [], findings: [] });
  expect(await versionsOf(first)).toEqual(before);
});

test('a killed API server is removed within 25 seconds', async () => {
  await second.kill();
  const killedAtMs = Date.now();

  await tickUntilPublished([FIRST], 3);

  // The start of the tick that removed it, because the speed of this machine counts for the rest.
  expect(nextTickAtMs - TICK_MS - killedAtMs).toBeLessThan(25_000);
});

test('one that comes back is in again with the next tick', async () => {
  await second.restart();

  await tickUntilPublished([FIRST, SECOND], 1);
});

test('an API server that reports its shutdown is removed at the next tick, although it still serves', async () => {
  await untilNextTick();
  await second.askToStop();

  const told = await tickUntilPublished([FIRST], 1);

  expect(told.changes).toContain(`dropped lease ${SECOND}: answered 500: it is shutting down`);
  await second.kill();
});

test('the last API server is never removed, and the report gives the reason', async () => {
  const before = await stored();
  expect(before.map(String)).toEqual([expect.stringContaining(FIRST), expect.stringContaining(FIRST)]);
  await first.askToStop();

  const told = await handlers.run(LOOP);

  expect(told.summary).toEqual({ passes: 1, failed: 1, skipped: 0 });
  const refusal =
    'no API server IP addresses were listed in storage, refusing to erase all endpoints for the kubernetes Service: ' +
    `${FIRST} answered 500: it is shutting down; ${SECOND} no answer: `;
  expect(told.findings).toEqual([expect.stringContaining(`noLiveLease: ${refusal}`)]);
  expect(told.errors).toEqual([expect.stringContaining(`NoLiveLease: ${refusal}`)]);
  expect(await stored()).toEqual(before);
});
