import { expect, test } from '@jest/globals';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { addressesIn, ENDPOINTS_REF, SERVICE_REF, SLICE_REF, sliceRef } from '../../lib/cluster/published-objects.ts';
import type { ObjectRef } from '../../lib/kubernetes/cluster-port.ts';
import { wrongField } from '../../lib/kubernetes/replies.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import type { PassReport } from '../../lib/loops/pass.ts';
import { CodedError, isRecord } from '../../lib/util/values.ts';
import type { MemoryCluster } from '../support/memory-cluster.ts';
import { A, B, dualWorldOf, PassWorld, settled, V6, W6 } from '../support/pass-world.ts';
import { stockCidr, stockRecord, stockService } from '../support/stock-objects.ts';

/* Each field of an object that passes read gets values that the API does not accept, or that only another writer sets. */

type Path = readonly (string | number)[];

/** The values of a field. `undefined` removes it. */
const VALUES: readonly unknown[] = [
  ...[undefined, null, '', {}, [null], [{}], 0, 'other', '010.000.000.001', '10.0.0.6', 'FD00:0::0005'],
  ...[[A], ['10.0.0.0/31'], ['10.0.0.5/32', '10.0.0.0/24'], '2026-01-01T00:00:00Z'],
];

/** The fields by which a client knows an object, and those that API servers set. */
const IDENTITY = /^(kind|apiVersion|metadata|metadata\.(name|namespace|uid|resourceVersion|managedFields.*))$/;

function pathsIn(value: unknown, path: Path = []): Path[] {
  const inner = isRecord(value) ? Object.entries(value) : Array.isArray(value) ? [...value.entries()] : [];
  const paths = inner.flatMap(([key, item]) => pathsIn(item, [...path, key]));
  return path.length === 0 || IDENTITY.test(path.join('.')) ? paths : [path, ...paths];
}

function changed(value: unknown, [key, ...rest]: Path, to: unknown): unknown {
  if (key === undefined) return to;
  if (Array.isArray(value)) return value.map((item, index) => (index === key ? changed(item, rest, to) : item));
  const { [key]: item, ...others } = value as Record<string, unknown>;
  const next = changed(item, rest, to);
  return next === undefined ? others : { ...others, [key]: next };
}

/** Returns each object that differs from `whole` in one field, with a text for the field and its value. */
const variants = (whole: KubernetesObject) =>
  [...pathsIn(whole), ['metadata', 'deletionTimestamp']].flatMap((path) =>
    VALUES.map((value) => ({
      variant: `${path.join('.')}: ${JSON.stringify(value)}`,
      object: changed(whole, path, value) as KubernetesObject,
    })),
  );

/** Returns the codes of the errors of passes; the code of an unexpected error is its text. */
async function codesOf(passes: number, pass: () => Promise<PassReport>): Promise<string[]> {
  const codes = new Set<string>();
  for (let count = 0; count < passes; count++) {
    const { errors } = await pass().catch((error: unknown) => ({ errors: [error] }));
    for (const error of errors) codes.add(error instanceof CodedError ? `${error.code}` : String(error));
  }
  return [...codes];
}

const PUBLISHED: readonly ObjectRef[] = [ENDPOINTS_REF, SLICE_REF, sliceRef('IPv6')];

const settledDual = () => settled(dualWorldOf(A, B, V6, W6).change({ service: { reconcile: true } }));

const FIRST_FAMILY = [A, B];
const RIGHT = JSON.stringify([FIRST_FAMILY, FIRST_FAMILY, [V6, W6]]);

const published = ({ cluster }: PassWorld) =>
  PUBLISHED.map((ref) => {
    const object = cluster.find(ref);
    return object && wrongField(ref.kind, { ...object }) ? 'not of the API' : addressesIn(object);
  });

const READ = [SERVICE_REF, ...PUBLISHED];

test.each(READ)('passes tolerate any value of a field of the $kind $name, or report an error', async (ref) => {
  const whole = (await settledDual()).cluster.find(ref) as KubernetesObject;
  const wrong: unknown[] = [];
  for (const { variant, object } of variants(whole)) {
    const world = await settledDual();
    world.cluster.place(object);
    const codes = await codesOf(2, () => world.tick());
    const isPublished = JSON.stringify(published(world)) === RIGHT;
    if (codes.length === 0 ? !isPublished : codes.join() !== 'MalformedReply') wrong.push([variant, codes]);
  }
  expect(wrong).toEqual([]);
});

const service = (name: string, ...clusterIPs: string[]) =>
  changed(stockService(name, ...clusterIPs), ['spec', 'ports'], [{ port: 80 }]) as KubernetesObject;

const CLUSTER: readonly KubernetesObject[] = [
  { ...stockCidr('10.0.0.0/24', 'fd00::/112'), ...{ status: { conditions: [{ type: 'Ready', status: 'True' }] } } },
  service('s', '10.0.0.5', 'fd00::5'),
  stockRecord('10.0.0.5', 'a/s'),
  stockRecord('fd00::5', 'a/s'),
  service('other', '10.0.0.6'),
  stockRecord('10.0.0.6', 'a/other'),
].map((object) => ({
  ...object,
  metadata: { creationTimestamp: '1970-01-01T00:00:00Z', labels: {}, ...object.metadata },
}));

/** Returns the addresses that a Service of the cluster has, and that have no IPAddress. */
function unrecorded({ find }: MemoryCluster): string[] {
  return ['s', 'other'].flatMap((name) => {
    const fields = Object(find({ kind: 'Service', namespace: 'a', name }))['spec'];
    const has = (address: string) =>
      fields?.clusterIP && JSON.stringify(fields.clusterIPs ?? '').includes(`"${address}"`);
    const addresses = ['10.0.0.5', 'fd00::5', '10.0.0.6'].filter(has);
    return addresses.filter((item) => find({ kind: 'IPAddress', name: item }) === undefined);
  });
}

const OBJECTS = CLUSTER.slice(0, 4).map((object) => [object.kind, object] as const);

test.each(OBJECTS)('repairs give each Service address an IPAddress, whatever a %s field contains', async (_, whole) => {
  const wrong: unknown[] = [];
  for (const { variant, object } of variants(whole)) {
    const objects = CLUSTER.map((each) => (each === whole ? object : each));
    const world = new PassWorld({ repair: { ipAddresses: true } }, objects);
    const left = new Set<string>();
    const codes = await codesOf(3, async () => {
      const report = await world.pass(clusterIpRepair);
      for (const item of unrecorded(world.cluster)) left.add(item);
      return report;
    });
    if (left.size > 0 || !['', 'MalformedReply'].includes(codes.join())) wrong.push([variant, codes, ...left]);
  }
  expect(wrong).toEqual([]);
});
