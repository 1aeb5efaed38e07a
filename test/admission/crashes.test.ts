import { describe, expect, test } from '@jest/globals';
import { TableError } from '../../lib/table/errors.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import type { ReviewFields } from '../support/admission-review.ts';
import { type Answered, anAdmissionWorld } from '../support/admission-world.ts';

/* Two ranges of addresses and one of ports: the longest way that a review takes. */

const LONGEST_WAY: ReviewFields = { spec: { type: 'NodePort', ipFamilyPolicy: 'RequireDualStack' } };
/** More than a review makes. */
const MOST_CALLS = 40;

type Fault = 'not made' | 'made, and its reply lost' | 'made later';

/** Call number `at` and, with `all`, each one after it fail like this. */
function faulty(table: KeyValueTable, fault: Fault, at: number, all: boolean) {
  let calls = 0;
  const late: (() => Promise<unknown>)[] = [];
  const failed = () => new TableError('DeadlineExceeded', 'the test says so');
  const call = async <Result>(make: () => Promise<Result>): Promise<Result> => {
    calls += 1;
    if (calls < at || (calls > at && !all)) return make();
    if (fault === 'made, and its reply lost') await make();
    if (fault === 'made later') late.push(make);
    throw failed();
  };
  const faultyTable: KeyValueTable = {
    ...table,
    get: (cluster, key) => call(() => table.get(cluster, key)),
    put: (item, previous) => call(() => table.put(item, previous)),
  };
  const arrive = async () => {
    for (const make of late) await make();
  };
  return { table: faultyTable, arrive, calls: () => calls };
}

/** All addresses and ports that an answer gives. */
function itemsIn({ patch = [] }: Answered): readonly (string | number)[] {
  return patch.flatMap(({ path, value }): readonly (string | number)[] => {
    // The first of the plural is the singular.
    if (path === '/spec/clusterIP') return [];
    return typeof value === 'object' ? value : [value];
  });
}

describe.each([false, true])('a failing call of the table (and of all later ones: %p)', (all) => {
  test.each<Fault>(['not made', 'made, and its reply lost', 'made later'])(
    '%s: the items of one Service go to no other, and are taken',
    async (fault) => {
      for (let at = 1; at <= MOST_CALLS; at++) {
        const world = await anAdmissionWorld();
        const broken = faulty(world.table, fault, at, all);
        const first = await world.send({ body: '{}' });
        expect(first.statusCode).toBe(400); // its token is known from here on
        const answers = [await world.ask({ ...LONGEST_WAY, name: 'web' }, broken.table)];
        await broken.arrive();
        answers.push(await world.ask({ ...LONGEST_WAY, name: 'other' }));
        answers.push(await world.ask({ ...LONGEST_WAY, name: 'web' }));
        answers.push(await world.ask({ ...LONGEST_WAY, name: 'third' }));
        const [lost, other, web, third] = answers.map(itemsIn);
        const own = new Set([...(lost ?? []), ...(web ?? [])]);
        const given = [...own, ...(other ?? []), ...(third ?? [])];
        expect({ at, twice: given.filter((item, index) => given.indexOf(item) !== index) }).toEqual({ at, twice: [] });
        const taken = Object.keys(await world.taken());
        expect({ at, free: given.filter((item) => !taken.includes(String(item))) }).toEqual({ at, free: [] });
        if (broken.calls() < at) return;
      }
      throw new Error('expected fewer calls');
    },
  );
});
