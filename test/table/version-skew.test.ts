import { describe, expect, test } from '@jest/globals';
import { countBody, receivedTicks, tickBody } from '../../lib/dispatch/event.ts';
import { pauseAllClusters, updateCluster, withPause } from '../../lib/table/cluster-registration.ts';
import { readCluster, readPauseOfAll } from '../../lib/table/clusters.ts';
import { listFleetNotes, writeSuspect } from '../../lib/table/fleet-notes.ts';
import type { Item, KeyValueTable, TableValue } from '../../lib/table/key-value-table.ts';
import { readLeases } from '../../lib/table/leases.ts';
import { readRange, saveRange } from '../../lib/table/ranges.ts';
import { readRequest, writeRequest } from '../../lib/table/requests.ts';
import { readRunRecord, writeRunRecord } from '../../lib/table/run-records.ts';
import { fieldsIn, isList } from '../../lib/table/stored-item.ts';
import { found } from '../support/found.ts';
import { memoryTable } from '../support/memory-table.ts';
import { aLease, type LeaseFields, withdraw } from '../support/put-lease.ts';
import { recordingTelemetry } from '../support/recording-telemetry.ts';
import { STORED_FORMS, type StoredForm, storedItem } from './stored-items.ts';

/* Each release reads items of the previous release, and items of the next one in the same schema. See docs/compatibility.md. */

const NEWER = { ofNewerRelease: { any: [1] } };
const LOOP = 'kubernetes-service';
const RANGE = 'ranges/serviceips';
const OF_SUSPECT = { stack: 'prod', loop: LOOP, cluster: 'demo' } as const;

interface Access {
  /** What a read of `least` and of `most` returns, if that differs from the stored values. */
  readonly asRead?: readonly [unknown, unknown];
  read(table: KeyValueTable): Promise<unknown>;
  /** Reads the item, changes it and writes it, as a command or a pass does. */
  rewrite(table: KeyValueTable): Promise<unknown>;
  /** The fields of the stored value that `rewrite` changes. */
  readonly changed: object;
}

const { given: _, ...mostOfRange } = STORED_FORMS.range.most({});
const UNCLAIMED = { namespace: 'default', name: 'web', reviews: 1, first: [0, 1], later: [] };
const pause = { untilMs: 9999, reason: 'later', by: 'someone' };
const suspectIn = async (table: KeyValueTable) => {
  const { suspects, unreadable } = await listFleetNotes(table, 'prod', LOOP);
  const corrupt = unreadable.get('demo');
  if (corrupt !== undefined) throw corrupt.error;
  return suspects.get('demo');
};

type ItemType = keyof typeof STORED_FORMS;

const TYPES: Readonly<Record<ItemType, Access>> = {
  registration: {
    read: (table) => readCluster(table, 'demo'),
    rewrite: (table) => updateCluster(table, 'demo', withPause(pause)),
    changed: { paused: pause },
  },
  'pause of all': {
    asRead: [undefined, STORED_FORMS['pause of all'].most({}).paused],
    read: readPauseOfAll,
    rewrite: (table) => pauseAllClusters(table, pause),
    changed: { paused: pause },
  },
  leases: {
    asRead: [
      [aLease({ address: '10.9.8.7', ...STORED_FORMS.leases.least['10.9.8.7'] })],
      Object.entries(STORED_FORMS.leases.most({})).map(([address, lease]) =>
        aLease({ address, ...lease } as LeaseFields),
      ),
    ],
    read: async (table) => (await readLeases(table, 'demo')).leases,
    rewrite: (table) => withdraw(table, 'demo', { address: '10.9.8.7', untilMs: 9999, nowMs: 1000 }),
    changed: { '10.9.8.7': { ...STORED_FORMS.leases.most({})['10.9.8.7'], withdrawnUntilMs: 9999 } },
  },
  'run record': {
    read: async (table) => (await readRunRecord(table, 'demo', LOOP))?.record,
    async rewrite(table) {
      const { record, item } = found(await readRunRecord(table, 'demo', LOOP));
      return writeRunRecord(table, 'demo', LOOP, { ...record, durationMs: 21 }, item);
    },
    changed: { durationMs: 21 },
  },
  range: {
    asRead: [
      { ...STORED_FORMS.range.least, unclaimed: [] },
      { ...mostOfRange, unclaimed: [UNCLAIMED] },
    ],
    read: async (table) => (await readRange(table, 'demo', RANGE))?.stored,
    async rewrite(table) {
      const { stored, item } = found(await readRange(table, 'demo', RANGE));
      return saveRange(table, 'demo', RANGE, { ...stored, generation: 4 }, item);
    },
    changed: { generation: 4 },
  },
  request: {
    read: async (table) => (await readRequest(table, 'demo', 'r1'))?.record,
    async rewrite(table) {
      const { record, item } = found(await readRequest(table, 'demo', 'r1'));
      const request = { cluster: 'demo', id: 'r1', nowMs: 1000 };
      return writeRequest(table, request, { ...record, state: 'done', answer: '{"a":1}' }, item);
    },
    changed: { answer: '{"a":1}' },
  },
  suspect: {
    read: async (table) => (await suspectIn(table))?.suspect,
    async rewrite(table) {
      const { suspect, item } = found(await suspectIn(table));
      return writeSuspect(table, OF_SUSPECT, { ...suspect, accidents: 2 }, item);
    },
    changed: { accidents: 2 },
  },
};

function tableOf(item: Item): KeyValueTable {
  return memoryTable({ store: new Map([[item.cluster, new Map([[item.key, item]])]]) });
}

/** The parts of the least stored values that are not required. */
const OPTIONAL: ReadonlySet<string> = new Set(['10.9.8.7', 'counts.services', 'spec', 'spec.repair']);

type Path = readonly string[];

/** Returns the path of the value itself, which is empty, and of each of its parts. */
function pathsIn(value: TableValue): Path[] {
  const parts: object = isList(value) ? value : (fieldsIn(value) ?? {});
  return [[], ...Object.entries(parts).flatMap(([name, part]) => pathsIn(part).map((rest) => [name, ...rest]))];
}

/** Returns the value with a changed part; `undefined` from `change` removes a field. */
function changedAt(
  value: TableValue,
  [name, ...rest]: Path,
  change: (part: TableValue) => TableValue | undefined,
): TableValue | undefined {
  if (name === undefined) return change(value);
  const parts = Object(value);
  const part = changedAt(parts[name], rest, change);
  return isList(value) ? value.with(Number(name), part ?? null) : { ...parts, [name]: part };
}

describe.each(Object.keys(TYPES) as ItemType[])('%s', (type) => {
  const form: StoredForm = STORED_FORMS[type];
  const { asRead, read, rewrite, changed } = TYPES[type];
  const written = async (item: Item) => {
    const table = tableOf(item);
    await rewrite(table);
    return read(table);
  };
  const [plain, newer] = [{}, NEWER].map((fields) => storedItem(form, { value: form.most(fields) })) as [Item, Item];

  test('items of release 0.1.0 can be read with and without their optional fields', async () => {
    const values = [await read(tableOf(storedItem(form))), await read(tableOf(plain))];
    expect(values).toEqual(asRead ?? [form.least, form.most({})]);
  });

  test('if one part of an item changes, all other parts keep their stored form', async () => {
    const table = tableOf(plain);
    await rewrite(table);
    expect((await table.get(form.cluster, form.key))?.value).toEqual({ ...Object(plain.value), ...changed });
  });

  test('unknown fields of a newer release affect neither the value that is read nor the result of a change', async () => {
    const known = (value: unknown) => JSON.stringify(value, (key, field) => (key in NEWER ? undefined : field));
    expect(known(await read(tableOf(newer)))).toBe(known(await read(tableOf(plain))));
    expect(known(await written(newer))).toBe(known(await written(plain)));
  });

  test('an item is corrupt if a part has another type or a required field is missing, and the error contains the top-level field', async () => {
    const isField = (path: Path) => path.length > 0 && Number.isNaN(Number(path.at(-1)));
    // Each loop checks its own state in the run record.
    const checked = pathsIn(form.most({})).filter(([first]) => first !== 'state' || type !== 'run record');
    const required = pathsIn(form.least).filter((path) => isField(path) && !OPTIONAL.has(path.join('.')));
    const faults = [
      ...checked.map((path) => [path, changedAt(form.most({}), path, (part) => (typeof part === 'string' ? 7 : 'x'))]),
      ...required.map((path) => [path, changedAt(form.least, path, () => undefined)]),
    ] as [Path, TableValue][];
    for (const [path, value] of faults) {
      const failure: unknown = await read(tableOf(storedItem(form, { value }))).catch((error: unknown) => error);
      expect([path, failure]).toEqual([path, expect.objectContaining({ code: 'Corrupt' })]);
      expect(String(failure)).toMatch(new RegExp(`Item \\S+ does not parse: (its value|${path[0]})\\b`));
    }
  });

  test('an item of a newer schema is refused, and a change does not overwrite it', async () => {
    const item = storedItem(form, { value: form.most({}), schema: form.schema + 1 });
    const table = tableOf(item);
    await expect(read(table)).rejects.toMatchObject({ code: 'SchemaTooNew' });
    await expect(rewrite(table)).rejects.toMatchObject({ code: 'SchemaTooNew' });
    expect(await table.get(form.cluster, form.key)).toEqual(item);
  });
});

test('a rewrite keeps fields of a newer release only in specs and in the leases of unchanged addresses', async () => {
  const rewritten = async (type: ItemType) => {
    const form: StoredForm = STORED_FORMS[type];
    const table = tableOf(storedItem(form, { value: form.most(NEWER) }));
    await TYPES[type].rewrite(table);
    return (await table.get(form.cluster, form.key))?.value;
  };
  const { spec, ...others } = Object(await rewritten('registration'));
  expect(spec).toMatchObject(NEWER);
  expect(JSON.stringify(others)).not.toContain('ofNewerRelease');
  expect(await rewritten('leases')).toMatchObject({ '10.9.8.6': NEWER, '10.9.8.7': { generation: 5 } });
  for (const type of ['pause of all', 'run record', 'range', 'request', 'suspect'] as const) {
    expect(JSON.stringify(await rewritten(type))).not.toContain('ofNewerRelease');
  }
});

test('tick messages and count messages are parsed even if they contain fields of a newer release', () => {
  const tick = { loop: LOOP, dueAtMs: 0, clusters: ['demo'] } as const;
  const more = (body: string) => JSON.stringify({ ...JSON.parse(body), ...NEWER });
  const bodies = [tickBody(tick), countBody(0, [{ name: 'demo' }])];
  const messages = bodies.map((body) => ({ body: more(body), isRedelivered: false }));
  const received = { ticks: [tick], interrupted: [], counted: ['demo'] };
  expect(receivedTicks(LOOP, messages, 0, recordingTelemetry())).toEqual(received);
});
