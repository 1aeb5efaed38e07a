import { expect, test } from '@jest/globals';
import { SERVICE_REF, type ServiceObject, sliceRef } from '../../lib/cluster/published-objects.ts';
import { aHost, aServer } from '../support/a-cluster-spec.ts';
import { anEndpoints, aSlice } from '../support/an-endpoints.ts';
import { found } from '../support/found.ts';
import { A, B, dualWorldOf, type PassWorld, READY, SILENT, settled, V6, W6 } from '../support/pass-world.ts';

const SECOND = sliceRef('IPv6');
const MANAGER = 'endpointslice.kubernetes.io/managed-by';
const LABELS = { 'kubernetes.io/service-name': 'kubernetes', [MANAGER]: 'kube-bootstrap-controller' };

const settledDual = () => settled(dualWorldOf(A, B, V6, W6));

function published(world: PassWorld) {
  return { first: world.published(), mirror: world.inSlice(), second: world.inSlice(SECOND) };
}

test('a dual-stack cluster gets a second slice for the second family, and its Service gets the policy PreferDualStack', async () => {
  const world = await settledDual();
  expect(published(world)).toEqual({ first: [A, B], mirror: [A, B], second: [V6, W6] });
  const slice = { addressType: 'IPv6', metadata: { labels: LABELS }, ports: [{ port: 6443 }] };
  expect(world.cluster.find(SECOND)).toMatchObject(slice);
  expect(world.cluster.find<ServiceObject>(SERVICE_REF)?.spec.ipFamilyPolicy).toBe('PreferDualStack');
  expect(await world.tick()).toMatchObject({ changes: [], findings: [], errors: [] });
  expect(world.cluster.writes).toEqual([]);
});

test('a dual-stack cluster gets the IPv4 addresses in the second slice if its first range is an IPv6 range', async () => {
  const world = await settled(dualWorldOf(A, V6).change({ serviceClusterIPRanges: ['fd00::/108', '10.0.0.0/24'] }));
  expect(published(world)).toMatchObject({ first: [V6], mirror: [V6] });
  expect(world.cluster.find(sliceRef('IPv4'))).toMatchObject({ addressType: 'IPv4', endpoints: [{ addresses: [A] }] });
});

test('if a host name has many addresses, a dual-stack cluster publishes addresses of both families, and for each family at most half of the limit', async () => {
  const world = dualWorldOf().change({ apiServers: [aHost('api.example.com')] });
  const records = Array.from({ length: 40 }, (_, index) => `10.0.1.${index + 1}`);
  world.records.set('api.example.com', [...records, V6]);
  const { findings } = await world.answer(READY, ...records, V6).tick();
  expect(published(world)).toMatchObject({ first: records.slice(0, 16).sort(), second: [V6] });
  expect(findings).toMatchObject([{ message: expect.stringContaining('40 addresses; 16 of them') }]);
});

test('the tick corrects the ipFamilyPolicy of a single-stack Service in a dual-stack cluster, and keeps the other fields', async () => {
  const world = await settledDual();
  const service = found(world.cluster.find<ServiceObject>(SERVICE_REF));
  const spec = { ...service.spec, ipFamilyPolicy: 'SingleStack', sessionAffinity: 'ClientIP' };
  await world.cluster.port.update({ ...service, spec });
  expect((await world.tick()).changes).toEqual(['updated service default/kubernetes: ipFamilyPolicy']);
  const corrected = { ...spec, ipFamilyPolicy: 'PreferDualStack' };
  expect(world.cluster.find<ServiceObject>(SERVICE_REF)?.spec).toEqual(corrected);
});

test('while no address of a family answers, all addresses of the family stay published; after one address answers again, the silent address is removed', async () => {
  const world = await settledDual();
  const silent = await world.answer(SILENT, V6, W6).ticks(20);
  expect(published(world).second).toEqual([V6, W6]);
  const message = expect.stringMatching(/^no IPv6 API server is live: .*set service.ipFamilyPolicy: SingleStack/);
  expect(silent.at(-1)).toMatchObject({ errors: [], findings: [{ type: 'noLiveLease', message }] });
  world.answer(READY, V6);
  await world.tick();
  expect(published(world).second).toEqual([V6, W6]);
  const reports = await world.ticks(3);
  expect(published(world)).toEqual({ first: [A, B], mirror: [A, B], second: [V6] });
  const removed = expect.stringContaining(`removed ${W6} from the endpoints: its lease expired`);
  expect(reports.flatMap(({ changes }) => changes)).toContainEqual(removed);
});

test('without lastOne, a deregistration of the last live address of a family is refused', async () => {
  const world = await settledDual();
  expect(await world.deregister({ address: W6 })).toMatchObject({ outcome: 'deregistered', stillPublished: false });
  expect(published(world)).toEqual({ first: [A, B], mirror: [A, B], second: [V6] });
  expect(await world.deregister({ address: V6 })).toMatchObject({ outcome: 'refused', reason: 'lastLiveAddress' });
  expect(await world.deregister({ address: V6, lastOne: true })).toMatchObject({ stillPublished: false });
  expect(published(world)).toEqual({ first: [A, B], mirror: [A, B], second: [] });
  expect(await world.deregister({ address: A })).toMatchObject({ outcome: 'deregistered', stillPublished: false });
  expect(published(world)).toMatchObject({ first: [B], mirror: [B] });
});

test('if the second slice is missing, a deregistration reports that an address of the second family might still be published', async () => {
  const world = await settledDual();
  world.cluster.remove(SECOND);
  expect(await world.deregister({ address: W6 })).toMatchObject({ outcome: 'deregistered', stillPublished: true });
  await world.tick();
  expect(await world.deregister({ address: W6 })).toMatchObject({ outcome: 'deregistered', stillPublished: false });
  expect(published(world).second).toEqual([V6]);
});

test('if many servers do not answer, the first 16 probes of a tick include, for each family, a server with an agent', async () => {
  const silent = Array.from({ length: 16 }, (_, index) => `192.0.2.${100 + index}`);
  const world = dualWorldOf(A, B, V6, ...silent);
  for (const address of [A, B, V6]) await world.setLease({ address, source: 'agent' });
  await world.tick();
  const first = world.probed.slice(0, 16).map(({ url }) => new URL(url).hostname);
  expect(first).toEqual(expect.arrayContaining([A, `[${V6}]`]));
});

test('an IPv4 address that is only in the IPv6 slice is not published if the address does not answer in the first pass', async () => {
  const world = dualWorldOf(A, B, V6).answer(SILENT, B);
  const foreign = aSlice([B]);
  world.cluster.place(anEndpoints([A]));
  world.cluster.place({ ...foreign, metadata: { ...foreign.metadata, name: SECOND.name } });
  await world.tick();
  expect(published(world)).toMatchObject({ first: [A], mirror: [A] });
});

test('the second slice is deleted when the spec has only one family again', async () => {
  const world = await settledDual();
  world.change({ service: { ipFamilyPolicy: 'SingleStack' }, apiServers: [aServer(A), aServer(B)] });
  expect((await world.tick()).changes).toContain('deleted endpointslice default/kubernetes-ipv6');
  expect(world.cluster.find(SECOND)).toBeUndefined();
  expect(published(world)).toMatchObject({ first: [A, B], mirror: [A, B] });
  expect(await world.tick()).toMatchObject({ changes: [], findings: [] });
});
