import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { consoleCommands, fencedBlocks, isWhatIsPrinted, showsThat } from '../support/console-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { collectOutput } from '../support/kbctl-process.ts';
import { REPOSITORY, readInRepository } from '../support/repository.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const text = readInRepository('README.md');
const blocks = fencedBlocks(text);
const INSTALL_AND_START = 'npm ci && npm start';

const folder = temporaryFolder();
let start: ReturnType<typeof spawn>;
const { add, output: printed } = collectOutput();

/* Runs npm start in a copy of the repository, because another process may use the folder of the repository. */
beforeAll(() => {
  for (const name of ['cli', 'package.json']) symlinkSync(join(REPOSITORY, name), join(folder, name));
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true });
  symlinkSync(join(REPOSITORY, 'cli/kbctl.mjs'), join(folder, 'node_modules/.bin/kbctl'));
  const env = environment();
  start = spawn('npm', ['start'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  for (const stream of ['stdout', 'stderr'] as const) {
    start[stream]?.setEncoding('utf8').on('data', (text: string) => add(stream, text));
  }
});

afterAll(async () => {
  const ended = start.exitCode === null ? once(start, 'exit') : undefined;
  // The signal goes to the process group, which contains npm and the processes that it started.
  if (start.pid !== undefined && ended !== undefined) process.kill(-start.pid, 'SIGINT');
  await ended;
});

test('npm start prints the output in README.md', async () => {
  const at = blocks.findIndex(({ lines }) => lines.join('\n') === INSTALL_AND_START);
  const shown = blocks[at + 1]?.lines ?? [];
  await eventually(() => {
    if (shown.length === 0 || !showsThat(printed(), shown)) throw new Error(`it prints\n${printed()}`);
  });
});

test('kbctl prints the output in README.md while npm start runs', async () => {
  const commands = consoleCommands('README.md', text);
  expect(commands).not.toEqual([]);
  for (const { at, command, output } of commands) {
    // The first passes may not have ended yet.
    await eventually(async () => {
      const options = { cwd: folder, env: environment(), encoding: 'utf8' } as const;
      const { stdout: answer } = spawnSync('bash', ['-c', `exec 2>&1\n${command}`], options);
      if (!isWhatIsPrinted(answer, output)) throw new Error(`${at}: it prints\n${answer}`);
    });
  }
});

test('README.md has fewer than 150 lines, and its first two npm commands start the demo and run the tests', () => {
  expect(text.trimEnd().split('\n').length).toBeLessThan(150);
  const commands = blocks.map(({ lines }) => lines.join('\n')).filter((block) => block.startsWith('np'));
  expect(commands.slice(0, 2)).toEqual([INSTALL_AND_START, 'npm test']);
});

/** Returns the environment without the variables that npm sets for this process. */
function environment(): Record<string, string> {
  const { PATH = '', HOME = '' } = process.env;
  const settings = { npm_config_loglevel: 'error', npm_config_update_notifier: 'false' };
  return { PATH: `${dirname(process.execPath)}:${PATH}`, HOME, ...settings };
}
