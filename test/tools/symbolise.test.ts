import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { build } from 'esbuild';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('symbolise replaces positions in a bundle by positions in its sources, and does not change other text', async () => {
  // The files are as in the folder of a release.
  const folder = temporaryFolder();
  cpSync(join(import.meta.dirname, '../../tools/symbolise.mjs'), join(folder, 'symbolise.mjs'));
  writeFileSync(join(folder, 'doctor.ts'), 'type A = 1;\n\nexport function check() {\n  throw new Error("x");\n}\n');
  mkdirSync(join(folder, 'maps/functions'), { recursive: true });
  const outfile = join(folder, 'doctor.mjs');
  await build({ entryPoints: [join(folder, 'doctor.ts')], outfile, minify: true, sourcemap: 'external' });
  renameSync(`${outfile}.map`, join(folder, 'maps/functions/doctor.mjs.map'));
  const node = (args: string[], input = '') => execFileSync(process.execPath, args, { input, encoding: 'utf8' });

  const program = `const { check } = await import(${JSON.stringify(outfile)}); try { check(); } catch (e) { console.log(e.stack) }`;
  const stack = node(['--input-type=module', '-e', program]).replaceAll(outfile, '/var/task/functions/doctor.mjs');
  const other = '["at x (file:///var/task/functions/allocate.mjs:1:20)","node:internal:1:2"]\n';
  const symbolised = node([join(folder, 'symbolise.mjs')], stack + other);
  expect(symbolised).toMatch(/^Error: x\n +at \w+ \(doctor\.ts:4:9\)\n/);
  expect(symbolised.endsWith(other)).toBe(true);
});
