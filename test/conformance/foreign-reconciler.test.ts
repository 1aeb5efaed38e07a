import { isDeepStrictEqual } from 'node:util';
import { beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { published, versionsOf } from '../support/kubernetes-service-objects.ts';
import { runningControlPlane, runningHandlers } from './running-control-plane.ts';

const LOOP = 'kubernetes-service';
const [THEIRS, OURS] = ['10.9.8.7', '10.9.8.99'] as const;
const INTERVAL_MS = 10_000;

/** The reconciler of this API server reverts the writes of others within ten seconds. */
const { apiserver } = runningControlPlane({ advertiseAddress: THEIRS, endpointReconcilerType: 'lease' });

beforeAll(() => eventually(() => expectPublished(THEIRS)));

async function expectPublished(...addresses: string[]): Promise<void> {
  expect(await published(apiserver)).toEqual({ endpoints: addresses, slice: addresses });
}

const handlers = runningHandlers(() => {
  const probe = { url: `${apiserver.url}/readyz` };
  const spec = { apiServers: [{ address: OURS, probe }], service: { securePort: apiserver.port } };
  // Only the tests advance this clock, because the time that the other owner needs varies.
  const startedAtMs = Date.now();
  return { kubeconfigFile: apiserver.kubeconfigFile, spec, clock: () => startedAtMs };
});

/** Runs a tick, and waits until the other owner has reverted its writes. */
async function tickAndAnswer(): Promise<{ readonly wrote: boolean; readonly findings: readonly string[] }> {
  const before = await versionsOf(apiserver);
  const { summary, findings } = await handlers.tick(LOOP);
  expect(summary).toEqual({ passes: 1, failed: 0, skipped: 0 });
  const wrote = !isDeepStrictEqual(await versionsOf(apiserver), before);
  await eventually(() => expectPublished(THEIRS));
  handlers.advance(INTERVAL_MS);
  return { wrote, findings };
}

test('if a kube-apiserver reverts a write, a finding names kube-apiserver as the second owner of the endpoints, and further writes are delayed', async () => {
  expect(await tickAndAnswer()).toEqual({ wrote: true, findings: [] });
  let noticed = await tickAndAnswer();
  // If the first write added an address, the pass notices the other owner only after it has corrected the endpoints once.
  if (noticed.findings.length === 0) noticed = await tickAndAnswer();
  expect(noticed).toEqual({ wrote: false, findings: twoOwners('contested writes wait 20 s') });
  expect(await handlers.record(LOOP)).toMatchObject({ outcome: 'succeeded', findings: [{ type: 'twoOwners' }] });

  for (const wrote of [true, false, false, false]) {
    const then = wrote ? 'it is written again' : 'contested writes wait 40 s';
    expect(await tickAndAnswer()).toEqual({ wrote, findings: twoOwners(then) });
  }
});

function twoOwners(then: string): unknown[] {
  const start =
    'twoOwners: the endpoints of default/kubernetes have two owners: kube-apiserver changed what was written';
  return [expect.stringContaining(`${start} here; ${then}. `)];
}
