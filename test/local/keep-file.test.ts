import { chmod, chown, lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { keepFile } from '../../local/data-folder.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const before = process.cwd();
let root: string;
let victim: string;
let file: string;

beforeEach(async () => {
  root = temporaryFolder();
  victim = join(root, 'victim');
  file = join(root, 'data', 'running.json');
  await writeFile(victim, 'precious');
});
afterEach(() => process.chdir(before));

const modeOf = async (path: string) => (await stat(path)).mode & 0o777;
const keep = async (text: string) => afterThisTest(await keepFile(file, text));

test('keepFile creates a file, and folders for it, that only this user can read', async () => {
  await keep('the key');
  expect(await Promise.all([join(root, 'data'), file].map(modeOf))).toEqual([0o700, 0o600]);
  expect(await readdir(join(root, 'data'))).toEqual(['running.json']);
});

test.each<[string, () => string]>([
  ['in its place', () => file],
  ['where its draft was expected', () => `${file}.${process.pid}`],
])('keepFile does not write through a symbolic link %s', async (_, place) => {
  await mkdir(join(root, 'data'), { mode: 0o700 });
  await symlink(victim, place());
  await keep('the key');
  expect(await readFile(victim, 'utf8')).toBe('precious');
  expect((await lstat(file)).isFile()).toBe(true);
  expect(await readFile(file, 'utf8')).toBe('the key');
});

test.each<[string, () => string]>([
  ['of its folder', () => join(root, 'data')],
  ['of .kbctl', () => join(root, '.kbctl')],
  ['of a folder in .kbctl', () => join(root, '.kbctl', 'embedded')],
])('keepFile fails and creates nothing if there is a symbolic link in place %s', async (_, link) => {
  const target = join(root, 'of-another-program');
  await mkdir(target, { mode: 0o700 });
  await mkdir(dirname(link()), { recursive: true, mode: 0o700 });
  await symlink(target, link());
  const folder = link().includes('.kbctl') ? join(root, '.kbctl', 'embedded') : link();
  process.chdir(root);
  await expect(keepFile(join(folder, 'running.json'), 'the key')).rejects.toMatchObject({
    exitCode: 3,
    message: `${link()} is a symbolic link: remove it, or name a folder with --data.`,
  });
  expect(await readdir(target)).toEqual([]);
});

test('keepFile refuses a folder that other users can write to', async () => {
  await mkdir(join(root, 'data'));
  await chmod(join(root, 'data'), 0o777);
  await expect(keep('the key')).rejects.toMatchObject({
    exitCode: 3,
    message: `Other users may write to ${join(root, 'data')}: run "chmod 700" on it, or name another with --data.`,
  });
  expect(await readdir(join(root, 'data'))).toEqual([]);
});

(process.getuid?.() === 0 ? test : test.skip)('keepFile refuses a folder of another user', async () => {
  await mkdir(join(root, 'data'), { mode: 0o700 });
  await chown(join(root, 'data'), 12_345, 12_345);
  await expect(keep('the key')).rejects.toMatchObject({
    exitCode: 3,
    message: `${join(root, 'data')} belongs to another user: name a folder of your own with --data.`,
  });
});
