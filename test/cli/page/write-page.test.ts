import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { writePage } from '../../../cli/page/write-page.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'write-page-'));
});
afterEach(() => rm(folder, { recursive: true }));

test('the file is the page, over what was there', async () => {
  const file = join(folder, 'status.html');

  await writePage(file, 'first');
  await writePage(file, 'a page of 茶');

  expect(await readFile(file, 'utf8')).toBe('a page of 茶');
  expect(await readdir(folder)).toEqual(['status.html']);
});

test('a file that cannot be written is said, and leaves nothing behind', async () => {
  await expect(writePage(join(folder, 'none', 'status.html'), 'page')).rejects.toThrow(
    /^the page cannot be written to .*status\.html: .*ENOENT.*\. Name a file in a folder that you may write to$/,
  );
  await expect(writePage(folder, 'page')).rejects.toThrow(/cannot be written/);
  expect(await readdir(folder)).toEqual([]);
});
