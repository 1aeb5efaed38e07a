import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { build } from 'esbuild';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();

/* The files are as in the folder of a release. */
beforeAll(async () => {
  cpSync(join(import.meta.dirname, '../../tools/symbolise.mjs'), join(folder, 'symbolise.mjs'));
  writeFileSync(
    join(folder, 'doctor.ts'),
    'type A = 1;\n\nexport function check() {\n  throw new Error("a fault");\n}\ncheck();\n',
  );
  mkdirSync(join(folder, 'maps/functions'), { recursive: true });
  const outfile = join(folder, 'doctor.mjs');
  await build({ entryPoints: [join(folder, 'doctor.ts')], outfile, minify: true, sourcemap: 'external' });
  renameSync(`${outfile}.map`, join(folder, 'maps/functions/doctor.mjs.map'));
});

const symbolise = (input: string) =>
  execFileSync(process.execPath, [join(folder, 'symbolise.mjs')], { input, encoding: 'utf8' });

test('symbolise replaces positions in a bundle by positions in its sources', () => {
  const program = `await import(${JSON.stringify(join(folder, 'doctor.mjs'))}).catch(({ stack }) => console.log(stack))`;
  const stack = execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' });
  const logged = stack.replaceAll(join(folder, 'doctor.mjs'), '/var/task/functions/doctor.mjs');
  expect(logged).toMatch(/at \w+ \(file:\/\/\/var\/task\/functions\/doctor\.mjs:1:\d+\)/);
  expect(symbolise(logged)).toMatch(/^Error: a fault\n +at \w+ \(doctor\.ts:4:9\)\n +at doctor\.ts:6:1\n/);
});

test('symbolise does not change other text', () => {
  const text =
    '{"level":"ERROR","stack":["at x (file:///var/task/functions/allocate.mjs:1:20)","node:internal:1:2"]}\n';
  expect(symbolise(text)).toBe(text);
});
