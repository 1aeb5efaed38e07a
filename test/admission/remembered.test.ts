import { describe, expect, test } from '@jest/globals';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { TableError } from '../../lib/table/errors.ts';
import type { Item, KeyValueTable, NewItem } from '../../lib/table/key-value-table.ts';
import { RANGE_KEYS } from '../../lib/table/ranges.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import type { ReviewFields } from '../support/admission-review.ts';
import { type AdmissionWorld, type Answered, anAdmissionWorld } from '../support/admission-world.ts';
import { anAllocateWorld } from '../support/allocate-world.ts';

/* The lowest free address is 10.0.0.17. One address must never be that of two Services, whatever fails. */

const NONE = new Uint8Array(0);
const isRecord = ({ key }: NewItem) => key.startsWith('admissions/');

function addressIn({ patch = [] }: Answered): unknown {
  return patch.find(({ path }) => path === '/spec/clusterIP')?.value;
}

/** A table whose first write of what a Service was given is made by `write`, and whose reply is an error. */
function withoutReply(table: KeyValueTable, write: (item: NewItem, previous: Item | undefined) => unknown) {
  let failed = false;
  const put: KeyValueTable['put'] = async (item, previous) => {
    if (failed || !isRecord(item)) return table.put(item, previous);
    failed = true;
    await write(item, previous);
    throw new TableError('DeadlineExceeded', 'the test says so');
  };
  return { ...table, put };
}

/** What other Services are given while this one is not there. */
async function givenToOthers(world: AdmissionWorld): Promise<readonly unknown[]> {
  const given: unknown[] = [];
  for (const name of ['one', 'two', 'three']) given.push(addressIn(await world.ask({ name })));
  return given;
}

describe('when nobody can tell whether it was recorded what a Service was given, two Services have not one address', () => {
  test('though it was recorded: it stays taken, and the Service is given it when it comes again', async () => {
    const world = await anAdmissionWorld();
    const lost = withoutReply(world.table, (item, previous) => world.table.put(item, previous));
    expect(await world.ask({}, lost)).toMatchObject({ allowed: false, status: { code: 503 } });
    expect(await givenToOthers(world)).not.toContain('10.0.0.17');
    expect(addressIn(await world.ask({}))).toBe('10.0.0.17');
  });

  test('though it is recorded later: the write comes to nothing, and what was given back is another’s', async () => {
    const world = await anAdmissionWorld();
    const late: { item: NewItem; previous: Item | undefined }[] = [];
    const lost = withoutReply(world.table, (item, previous) => late.push({ item, previous }));
    expect(await world.ask({}, lost)).toMatchObject({ allowed: false });
    for (const { item, previous } of late) expect((await world.table.put(item, previous)).outcome).toBe('lost');
    const others = await givenToOthers(world);
    expect(others).toContain('10.0.0.17');
    expect(others).not.toContain(addressIn(await world.ask({})));
  });

  test('though another review of the same Service was told of it meanwhile', async () => {
    const world = await anAdmissionWorld();
    let other: Answered | undefined;
    const lost = withoutReply(world.table, async (item, previous) => {
      await world.table.put(item, previous);
      other = await world.ask({ uid: 'u-2' });
    });
    await world.ask({}, lost);
    expect(other && addressIn(other)).toBe('10.0.0.17');
    expect(await givenToOthers(world)).not.toContain('10.0.0.17');
  });

  test('though nothing can be found out: it stays taken, and a pass frees it', async () => {
    const world = await anAdmissionWorld();
    const put: KeyValueTable['put'] = async (item, previous) => {
      if (isRecord(item)) throw new TableError('Throttled', 'the test says so');
      return world.table.put(item, previous);
    };
    await world.ask({}, { ...world.table, put });
    expect(Object.keys(await world.taken())).toEqual(['10.0.0.17']);
    expect(world.telemetry.lines.map(({ message }) => message)).toEqual([
      'admission: not given back',
      'admission: failed',
    ]);
  });
});

describe('what a Service was given a moment ago is given again only while it is its own', () => {
  test('not when it was released: then it is taken anew, or another is', async () => {
    const world = await anAdmissionWorld();
    await world.ask({});
    await world.store(RANGE_KEYS.primary, { data: NONE });
    expect(addressIn(await world.ask({}))).toBe('10.0.0.17');
    expect(Object.keys(await world.taken())).toEqual(['10.0.0.17']);
  });

  test.each<[string, ReviewFields, boolean]>([
    ['not when somebody holds it since', {}, true],
    ['nor when it asks for it by name', { spec: { clusterIP: '10.0.0.17' } }, false],
  ])('%s', async (_what, fields, allowed) => {
    const world = await anAdmissionWorld();
    await world.ask({});
    const holds = [{ items: ['10.0.0.17'], owner: 'team-a', takenUpBy: 'owner' as const }];
    await world.store(RANGE_KEYS.primary, { holds });
    const answer = await world.ask(fields);
    expect(answer.allowed).toBe(allowed);
    expect(addressIn(answer)).toBe(allowed ? '10.0.0.18' : undefined);
    expect((await world.stored(RANGE_KEYS.primary)).holds).toEqual(holds);
  });

  test('not when the cluster has another range since', async () => {
    const world = await anAdmissionWorld();
    await world.ask({});
    const spec = { name: 'demo', allocator: 'table', serviceNodePortRange: '30000-30127' } as const;
    await registerCluster(
      world.table,
      aClusterSpec({ ...spec, serviceClusterIPRanges: ['10.1.0.0/24', 'fd00::/112'] }),
    );
    expect(await world.ask({})).toMatchObject({ allowed: false, status: { code: 503 } });
    await world.store(RANGE_KEYS.primary, { range: '10.1.0.0/24', data: NONE, generation: 2 });
    expect(addressIn(await world.ask({}))).toBe('10.1.0.17');
  });
});

test('a hold that is made while a Service asks for its address is not taken up, and what is held stays taken', async () => {
  const world = await anAdmissionWorld();
  const requests = await anAllocateWorld({ table: world.table, clock: world.clock });
  let reads = 0;
  const get: KeyValueTable['get'] = async (cluster, key) => {
    if (key === RANGE_KEYS.primary && ++reads === 2) {
      await requests.ask({ items: [{ range: 'serviceips', value: '10.0.0.5' }] });
    }
    return world.table.get(cluster, key);
  };
  const ports = [{ port: 80, nodePort: 1 }];
  await world.ask({ spec: { clusterIP: '10.0.0.5', type: 'NodePort', ports } }, { ...world.table, get });
  expect(await world.taken()).toEqual({ '10.0.0.5': 'r1' });
});
