import { globSync } from 'node:fs';
import path from 'node:path';
import { type Plant, plantsIn } from '../simulation/plants.ts';
import { REPOSITORY, readInRepository } from '../support/repository.ts';

/** A row of SECURITY.md: a test file, and the title of a test or of a block of tests in it. */
export interface Row {
  readonly file: string;
  readonly title: string;
}

export function rowsOfSecurityPage(): readonly Row[] {
  const rows = readInRepository('SECURITY.md').matchAll(/^\| `([\w-]+\.test\.ts)` \| `([^`]+)` \|$/gm);
  return [...rows].map(([, file = '', title = '']) => ({ file, title }));
}

/** The edits that each remove one guard. The first line of an edit is the row whose test must then fail. */
export const GUARDS: readonly Plant[] = plantsIn(`${import.meta.dirname}/guards.txt`);

export function isOfRow({ id, defect }: Plant, { file, title }: Row): boolean {
  return id === file && defect === title;
}

/** Returns the path in the repository of the test file of a row that has its title. */
export function testFileOf({ file, title }: Row): string | undefined {
  return globSync(`test/**/${file}`, { cwd: REPOSITORY }).find((name) =>
    [`'${title}'`, `"${title}"`, `\`${title}\``].some((text) => readInRepository(name).includes(text)),
  );
}

/** Returns the jest project of a test file, which has the name of its folder. */
export function projectOf(testFile: string): string {
  const [, folder = ''] = path.dirname(testFile).split(path.sep);
  return ['template', 'conformance', 'deploy', 'page'].includes(folder) ? folder : 'unit';
}
