import { expect, test } from '@jest/globals';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { readCluster } from '../../lib/table/clusters.ts';
import { registerStarted } from '../../local/register-started.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { aTable } from '../support/stand-in.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const OBSERVE = aClusterSpec({ name: 'lab', mode: 'observe' });
const ENFORCE = { ...OBSERVE, mode: 'enforce' } as const;

/** A table in which the file was started once, and kbctl changed something since. */
async function changedSince(file = OBSERVE, changed = ENFORCE) {
  const table = aTable();
  const folder = temporaryFolder();
  expect((await registerStarted(table, file, folder)).notes).toEqual([]);
  await registerCluster(table, changed);
  return { table, folder, registered: async () => (await readCluster(table, 'lab'))?.spec };
}

test('a local run that is started again keeps changes with kbctl if its file was not edited, and reports them', async () => {
  const { table, folder, registered } = await changedSince();
  expect(await registerStarted(table, OBSERVE, folder)).toEqual({
    spec: ENFORCE,
    notes: [
      'Kept, because the spec file was not edited since the last start ("kbctl cluster apply -f FILE" applies it):',
      '  mode: observe -> enforce',
    ],
  });
  expect(await registered()).toEqual(ENFORCE);
});

test('a local run that is started again follows an edited file, and shows the changes', async () => {
  const { table, folder, registered } = await changedSince();
  const edited = { ...OBSERVE, maxEventsPerPass: 3 };
  const { spec, notes } = await registerStarted(table, edited, folder);
  expect(spec).toEqual(edited);
  expect(notes[0]).toBe('The spec file replaces what was registered:');
  expect(notes).toContain('  mode: enforce -> observe');
  expect(await registered()).toEqual(edited);
});

test('a local run that is started again reports nothing when nothing differs', async () => {
  const { table, folder } = await changedSince(OBSERVE, { ...OBSERVE, mode: 'enforce' });
  await registerCluster(table, OBSERVE);
  expect(await registerStarted(table, OBSERVE, folder)).toEqual({ spec: OBSERVE, notes: [] });
});
