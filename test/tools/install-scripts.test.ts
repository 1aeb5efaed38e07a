import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { REPOSITORY } from '../support/repository.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

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

test('npm does not run install scripts of dependencies with the settings of this repository', () => {
  expect({ ours: ranOnInstall(true), none: ranOnInstall(false) }).toEqual({ ours: false, none: true });
});
