import { expect, test } from '@jest/globals';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { aReview } from '../support/admission-review.ts';
import { anAdmissionWorld, TOKEN } from '../support/admission-world.ts';

const body = JSON.stringify(aReview());

test('a cluster that floods the webhook is refused before its body is read, and others are answered', async () => {
  const world = await anAdmissionWorld({ readTokens: async () => ({ outcome: 'read', text: TOKEN }) });
  await registerCluster(world.table, aClusterSpec({ name: 'quiet' }));
  const flood = async (count: number) => {
    const statuses: number[] = [];
    for (let sent = 0; sent < count; sent += 1) statuses.push((await world.send({ body: '{' })).statusCode);
    return statuses;
  };

  expect(new Set(await flood(1_000))).toEqual(new Set([400]));
  expect(await world.send({ body })).toMatchObject({ statusCode: 429 });
  expect(await world.send({ path: '/quiet', body })).toMatchObject({ statusCode: 200 });

  world.clock.nowMs += 1_000;
  expect(await flood(21)).toEqual([...Array<number>(20).fill(400), 429]);
});

test('callers without a token do not count against the rate of a cluster', async () => {
  const world = await anAdmissionWorld();
  for (let sent = 0; sent < 1_500; sent += 1) await world.send({ headers: {}, body });
  expect(await world.send({ body })).toMatchObject({ statusCode: 200 });
});
