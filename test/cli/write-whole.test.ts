import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { writeWhole } from '../../cli/files.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'write-whole-'));
});
afterEach(() => rm(folder, { recursive: true }));

test('the file is what was given, over what was there', async () => {
  const file = join(folder, 'status.html');

  await writeWhole(file, 'first');
  await writeWhole(file, 'a page of 茶');

  expect(await readFile(file, 'utf8')).toBe('a page of 茶');
  expect(await readdir(folder)).toEqual(['status.html']);
});

test('a link stays one, and leads to what was given', async () => {
  const [file, link] = [join(folder, 'there'), join(folder, 'link')];
  await writeFile(file, 'before');
  await symlink(file, link);

  await writeWhole(link, 'after');

  expect(await readFile(file, 'utf8')).toBe('after');
  expect((await readdir(folder)).sort()).toEqual(['link', 'there']);
});

test('what is no file stays what it is', async () => {
  await writeWhole('/dev/null', 'nothing');

  expect((await stat('/dev/null')).isCharacterDevice()).toBe(true);
});

test('a file that cannot be written is said, and leaves nothing behind', async () => {
  await expect(writeWhole(join(folder, 'none', 'status.html'), 'page')).rejects.toThrow(
    /Cannot write .*status\.html \(ENOENT\): use a file in a writable folder\.$/,
  );
  await expect(writeWhole(folder, 'page')).rejects.toThrow(/\(EISDIR\)/);
  expect(await readdir(folder)).toEqual([]);
});
