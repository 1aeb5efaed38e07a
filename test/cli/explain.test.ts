import { tmpdir } from 'node:os';
import { describe, expect, test } from '@jest/globals';
import { runKbctl } from '../support/kbctl-process.ts';

/** It asks no table. */
const explain = (...words: string[]) => runKbctl(['explain', ...words], { cwd: tmpdir(), env: {} });

describe('kbctl explain', () => {
  test('says what a finding is, causes and how to mend it', async () => {
    const { code, stdout, stderr } = await explain('ClusterIPAlreadyAllocated');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^duplicate \(finding, action required\): /);
    expect(stdout).toMatch(/Causes\n- [\s\S]*Resolution\n1\. /);
  });

  test('lists all that there is to explain', async () => {
    const { stdout } = await explain('-o', 'json');
    expect(JSON.parse(stdout).items).toContainEqual(expect.objectContaining({ word: 'leak', wordKind: 'finding' }));
  });

  test('knows what a misspelt word was meant to be', async () => {
    expect(await explain('duplicat')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'error: "duplicat" is not a known word; did you mean duplicate?\n',
    });
  });
});
