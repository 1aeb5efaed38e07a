import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const REPOSITORY = join(import.meta.dirname, '../..');
const { version }: { readonly version: string } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8'));

/** Where the package is packed, and installed as `npm install --global` does. */
const folder = temporaryFolder();

beforeAll(() => {
  // Its own prepack alone, which .npmrc turns off with the scripts of dependencies.
  npm('pack', '--ignore-scripts=false', '--pack-destination', folder);
  const [tarball = ''] = readdirSync(folder);
  npm('install', '--global', '--prefix', folder, '--prefer-offline', join(folder, tarball));
});

function npm(...args: readonly string[]): void {
  const options = ['--no-audit', '--no-fund', '--loglevel=error'];
  execFileSync('npm', [...args, ...options], { cwd: REPOSITORY, encoding: 'utf8', stdio: 'pipe' });
}

interface Ran {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

/** Runs the installed command where nothing of the repository is, under the `node` of that folder. */
function kbctl(args: readonly string[], nodeFolder: string, nodeOptions = ''): Ran {
  const { status, stdout, stderr } = spawnSync(join(folder, 'bin/kbctl'), args, {
    cwd: folder,
    env: { PATH: [nodeFolder, '/usr/bin', '/bin'].join(delimiter), NODE_OPTIONS: nodeOptions },
    encoding: 'utf8',
  });
  return { code: status, output: stdout, errors: stderr };
}

const current = dirname(process.execPath);

test('the command of the installed package prints its version', () => {
  expect(kbctl(['--version'], current)).toEqual({ code: 0, output: `${version}\n`, errors: '' });
});

test('the command of the installed package prints its usage', () => {
  expect(kbctl(['--help'], current)).toMatchObject({
    code: 0,
    output: expect.stringMatching(/^Usage: kbctl /),
    errors: '',
  });
});

test('the command of the installed package runs the loops with all that they need, and other commands find them', async () => {
  const env = { PATH: [current, '/usr/bin', '/bin'].join(delimiter) };
  const child = spawn(join(folder, 'bin/kbctl'), ['run'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  try {
    await eventually(() => expect(said).toContain('created endpoints default/kubernetes: 192.0.2.1'));
    const [, page = ''] = /^Status page: (\S+)$/m.exec(said) ?? [];
    expect(await (await fetch(page)).text()).toContain('embedded');
    expect(await (await fetch(new URL('../metrics', page))).text()).toContain('cluster_health');
    expect(kbctl(['status', 'embedded'], current)).toMatchObject({
      code: 0,
      output: expect.stringMatching(/^embedded +good /),
      errors: '',
    });
  } finally {
    child.kill('SIGINT');
  }
  expect(await ended).toEqual([0, null]);
});

const pretence = "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })";
const pretend = `--import data:text/javascript,${encodeURIComponent(pretence)}`;
test.each([
  { node: 'one that pretends to be 20.20.2', at: current, options: pretend },
  ...oldNodes().map((at) => ({ node: join(at, 'node'), at, options: '' })),
])('the command of the installed package reports in one line that Node is too old: $node', ({ at, options }) => {
  expect(kbctl(['--version'], at, options)).toEqual({
    code: 1,
    output: '',
    errors: expect.stringMatching(/^kube-bootstrap-controller needs Node\.js 22\.19 or later and this is .*\n$/),
  });
});

test('the package contains the parts of the command, and none of its sources', () => {
  const root = join(folder, 'lib/node_modules/kube-bootstrap-controller');
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (file) => !file.startsWith('node_modules'),
  );
  expect(files).toEqual(
    expect.arrayContaining(['dist/kbctl.mjs', 'dist/kbctl.mjs.map', 'README.md', 'LICENSE', 'CHANGELOG.md']),
  );
  expect(files.filter((file) => /\.ts$|^(test|lib|local|functions)/.test(file))).toEqual([]);
});

/** Folders of the PATH whose `node` is older than what is needed. */
function oldNodes(): string[] {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((at) => existsSync(join(at, 'node')));
  return [...new Set(folders.map((at) => realpathSync(at)))].filter((at) => {
    const { stdout } = spawnSync(join(at, 'node'), ['--version'], { encoding: 'utf8' });
    return /^v(1\d|20)\./.test(stdout);
  });
}
