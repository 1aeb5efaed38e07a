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

test('replaces the content of a file', async () => {
  const file = join(folder, 'status.html');

  await writeWhole(file, 'first');
  await writeWhole(file, 'a page of 茶');

  expect(await readFile(file, 'utf8')).toBe('a page of 茶');
  expect(await readdir(folder)).toEqual(['status.html']);
});

test('keeps a link, and replaces the file behind it', async () => {
  const [file, link] = [join(folder, 'there'), join(folder, 'link')];
  await writeFile(file, 'before');
  await symlink(file, link);

  await writeWhole(link, 'after');

  expect(await readFile(file, 'utf8')).toBe('after');
  expect((await readdir(folder)).sort()).toEqual(['link', 'there']);
});

test('writes to a device without replacing it', async () => {
  await writeWhole('/dev/null', 'nothing');

  expect((await stat('/dev/null')).isCharacterDevice()).toBe(true);
});

test('reports a file that cannot be written, and leaves nothing behind', async () => {
  await expect(writeWhole(join(folder, 'none', 'status.html'), 'page')).rejects.toThrow(
    /Cannot write .*status\.html \(ENOENT\): use a file in a writable folder\.$/,
  );
  await expect(writeWhole(folder, 'page')).rejects.toThrow(/\(EISDIR\)/);
  expect(await readdir(folder)).toEqual([]);
});
