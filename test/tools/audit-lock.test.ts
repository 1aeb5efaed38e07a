import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { auditLock, type LockedPackage } from '../../tools/audit-lock.ts';
import { REPOSITORY, readInRepository } from '../support/repository.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const GOOD = { version: '4.4.3', integrity: `sha512-${'a'.repeat(86)}==`, license: 'MIT' };
const REGISTRY = 'https://registry.npmjs.org/';

function faultsOf(locked: LockedPackage, at = 'node_modules/debug'): readonly string[] {
  return auditLock({ '': {}, [at]: locked }, {});
}

test.each<[string, LockedPackage, string]>([
  ['no hash', { license: 'MIT' }, 'has no SHA-512 hash'],
  ['a weak hash', { ...GOOD, integrity: 'sha1-abc=' }, 'has no SHA-512 hash'],
  ['another registry', { ...GOOD, resolved: 'https://evil.example/debug.tgz' }, 'comes from https://evil.example'],
  ['a git repository', { ...GOOD, resolved: 'git+ssh://git@example.com/debug.git#abc' }, 'comes from git+ssh'],
  ['the URL of another package', { ...GOOD, resolved: `${REGISTRY}ms/-/ms-4.4.3.tgz` }, 'comes from https://registry'],
  ['the URL of another version', { ...GOOD, resolved: `${REGISTRY}debug/-/debug-4.4.2.tgz` }, 'comes from https://'],
  ['the name of another package', { ...GOOD, name: 'ms' }, 'is the package ms'],
  ['a licence that is not on the list', { ...GOOD, license: 'AGPL-3.0' }, 'has the licence AGPL-3.0'],
  ['no licence', { integrity: GOOD.integrity }, 'has the licence undefined'],
  ['an install script', { ...GOOD, hasInstallScript: true }, 'has an install script that allowScripts omits'],
  ['a deprecation', { ...GOOD, deprecated: 'no longer supported' }, 'is deprecated: no longer supported'],
  ['a folder', { link: true, resolved: '../evil' }, 'is the folder ../evil'],
])('the audit of package-lock.json refuses a package with %s', (_what, locked, fault) => {
  expect(faultsOf(locked)).toEqual([expect.stringContaining(`node_modules/debug: ${fault}`)]);
  expect(faultsOf(locked, 'node_modules/a/node_modules/debug')).toHaveLength(1);
});

test('the audit of package-lock.json refuses an allowScripts entry that allows an install script', () => {
  const packages = { 'node_modules/debug': { ...GOOD, hasInstallScript: true } };
  expect(auditLock(packages, { debug: false })).toEqual([]);
  expect(auditLock(packages, { debug: true })).toEqual(['allowScripts: debug may run its install script']);
});

test('the audit of package-lock.json accepts a package with a hash and a licence, or a choice of licences', () => {
  expect(faultsOf(GOOD)).toEqual([]);
  const resolved = `${REGISTRY}debug/-/debug-4.4.3.tgz`;
  expect(faultsOf({ ...GOOD, license: '(MIT OR GPL-3.0)', resolved })).toEqual([]);
  const osls = { ...GOOD, name: 'osls', resolved: `${REGISTRY}osls/-/osls-4.4.3.tgz` };
  expect(faultsOf(osls, 'node_modules/serverless')).toEqual([]);
  expect(faultsOf({ ...GOOD, license: 'MIT AND GPL-3.0' })).toHaveLength(1);
});

test('the audit of package-lock.json accepts a missing hash only for a package that is not installed on this platform', () => {
  const optional = { optional: true };
  expect(faultsOf({ ...optional, os: ['darwin'], cpu: ['arm64'] })).toEqual([]);
  expect(faultsOf({ ...optional, os: ['linux'], cpu: ['x64'], libc: ['musl'] })).toEqual([]);
  expect(faultsOf({ ...optional, os: ['linux'], cpu: ['x64'] })).not.toEqual([]);
  expect(faultsOf({ ...optional, os: ['!win32'] })).not.toEqual([]);
  expect(faultsOf({ os: ['darwin'] })).not.toEqual([]);
});

test('the audit of package-lock.json finds no fault in the file of this repository', () => {
  const read = (name: string) => JSON.parse(readInRepository(name));
  expect(auditLock(read('package-lock.json').packages, read('package.json').allowScripts)).toEqual([]);
});

/** Installs a dependency with an install script, with or without the settings of this repository. @returns whether it ran */
function ranOnInstall(hasOurSettings: boolean): boolean {
  const project = temporaryFolder();
  const dependency = path.join(project, 'planted');
  mkdirSync(dependency);
  const scripts = { postinstall: "node -e \"fs.writeFileSync('ran','')\"" };
  writeFileSync(path.join(dependency, 'package.json'), JSON.stringify({ name: 'planted', version: '1.0.0', scripts }));
  writeFileSync(path.join(project, 'package.json'), JSON.stringify({ dependencies: { planted: 'file:planted' } }));
  if (hasOurSettings) copyFileSync(path.join(REPOSITORY, '.npmrc'), path.join(project, '.npmrc'));
  // Removes the variables that npm sets for this test, because the other npm would read them as settings.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));
  const args = ['install', '--offline', '--no-audit', '--no-fund', '--dangerously-allow-all-scripts'];
  execFileSync('npm', args, { cwd: project, env, stdio: 'pipe' });
  return existsSync(path.join(dependency, 'ran'));
}

test('with the settings of this repository, npm does not run install scripts of dependencies', () => {
  expect({ ours: ranOnInstall(true), none: ranOnInstall(false) }).toEqual({ ours: false, none: true });
});
