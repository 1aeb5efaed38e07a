import { expect, test } from '@jest/globals';
import { callKbctl } from '../../support/kbctl-in-process.ts';

const explain = async (...words: string[]) => (await callKbctl(['explain', ...words], { cwd: '.', env: {} })).ran;

test('kbctl explain prints the meaning, causes and resolution of a finding', async () => {
  const { code, stdout, stderr } = await explain('ClusterIPAlreadyAllocated');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^duplicate \(finding, action required\): /);
  expect(stdout).toMatch(/Causes\n- [\s\S]*Resolution\n1\. /);
});

test('kbctl explain lists all words', async () => {
  const { stdout } = await explain('-o', 'json');
  expect(JSON.parse(stdout).items).toContainEqual(expect.objectContaining({ word: 'leak', wordKind: 'finding' }));
});

test('kbctl explain suggests the nearest word for an unknown one', async () => {
  expect(await explain('duplicat')).toEqual({
    code: 2,
    stdout: '',
    stderr: 'error: "duplicat" is not a known word; did you mean duplicate?\n',
  });
});
