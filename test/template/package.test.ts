import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { REPOSITORY, readInRepository } from '../support/repository.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const { version }: { readonly version: string } = JSON.parse(readInRepository('package.json'));

/** The folder in which the test packs the package and installs it with `npm install --global`. */
const folder = temporaryFolder();

beforeAll(() => {
  // Runs only the prepack script of this package. The .npmrc turns off all scripts.
  npm('pack', '--ignore-scripts=false', '--pack-destination', folder);
  const [tarball = ''] = readdirSync(folder);
  npm('install', '--global', '--prefix', folder, '--prefer-offline', join(folder, tarball));
});

function npm(...args: readonly string[]): void {
  const options = ['--no-audit', '--no-fund', '--loglevel=error'];
  execFileSync('npm', [...args, ...options], { cwd: REPOSITORY, encoding: 'utf8', stdio: 'pipe' });
}

/** Runs the installed command outside the repository, with the `node` of `nodeFolder`. */
function kbctl(args: readonly string[], nodeFolder: string, nodeOptions = '') {
  const env = { PATH: [nodeFolder, '/usr/bin', '/bin'].join(delimiter), NODE_OPTIONS: nodeOptions };
  return spawnSync(join(folder, 'bin/kbctl'), args, { cwd: folder, env, encoding: 'utf8' });
}

const current = dirname(process.execPath);

test('the command of the installed package prints its version and its usage', () => {
  expect(kbctl(['--version'], current)).toMatchObject({ status: 0, stdout: `${version}\n`, stderr: '' });
  const usage = { status: 0, stdout: expect.stringMatching(/^Usage: kbctl /), stderr: '' };
  expect(kbctl(['--help'], current)).toMatchObject(usage);
});

test('the run command of the installed package runs the loops, and other commands find its table', async () => {
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
      status: 0,
      stdout: expect.stringMatching(/^embedded +good /),
      stderr: '',
    });
  } finally {
    child.kill('SIGINT');
  }
  expect(await ended).toEqual([0, null]);
});

test('the kbctl of this repository loads the AWS SDK only in commands that use it', () => {
  const hook = `import { registerHooks } from 'node:module';
    registerHooks({ load: (url, context, next) => (url.includes('/@aws-sdk/') && console.error(url), next(url, context)) });`;
  const run = (...args: readonly string[]) => {
    const node = ['--import', `data:text/javascript,${encodeURIComponent(hook)}`, 'cli/kbctl.mjs', ...args];
    return spawnSync(process.execPath, node, { cwd: REPOSITORY, encoding: 'utf8' }).stderr;
  };
  expect(run('--help')).toBe('');
  expect(run('status', '--table', 'none', '--region', 'nowhere')).toContain('/@aws-sdk/client-dynamodb/');
});

const pretence = "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })";
const pretend = `--import data:text/javascript,${encodeURIComponent(pretence)}`;
test.each([
  { node: 'a Node.js that pretends to be 20.20.2', at: current, options: pretend },
  ...oldNodes().map((at) => ({ node: join(at, 'node'), at, options: '' })),
])('the command of the installed package prints one line if Node.js is too old: $node', ({ at, options }) => {
  expect(kbctl(['--version'], at, options)).toMatchObject({
    status: 1,
    stdout: '',
    stderr: expect.stringMatching(/^kube-bootstrap-controller needs Node\.js 22\.19 or later and this is .*\n$/),
  });
});

test('the kbctl of a release checks the version of Node.js before anything else', () => {
  const file = join(temporaryFolder(), 'kbctl.mjs');
  const node = (...args: readonly string[]) => spawnSync(process.execPath, args, { cwd: REPOSITORY, encoding: 'utf8' });
  expect(node('tools/build-cli.mjs', '--whole', file).status).toBe(0);
  expect(node(file, 'version').status).toBe(0);
  const refused = node(...pretend.split(' '), file, 'status', '--table', 'x');
  expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('kbctl needs Node.js 22.19 or later') });
});

test('the steps of the Dockerfile work in a clean folder, and the command of the image prints its help', () => {
  const PATH = `${current}:${process.env['PATH']}`;
  const env = { ...process.env, PATH };
  const script = join(REPOSITORY, 'test/template/image-steps.sh');
  expect(execFileSync('bash', [script], { env, encoding: 'utf8' })).toContain('Usage: kbctl');
});

test('the package contains the files of the command, and no source files', () => {
  const root = join(folder, 'lib/node_modules/kube-bootstrap-controller');
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (file) => !file.startsWith('node_modules'),
  );
  expect(files).toEqual(
    expect.arrayContaining(['dist/kbctl.mjs', 'dist/kbctl.mjs.map', 'README.md', 'LICENSE', 'CHANGELOG.md']),
  );
  expect(files.filter((file) => /\.ts$|^(test|lib|local|functions)/.test(file))).toEqual([]);
});

/** Returns the folders of the PATH whose `node` is older than the required version. */
function oldNodes(): string[] {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((at) => existsSync(join(at, 'node')));
  return [...new Set(folders.map((at) => realpathSync(at)))].filter((at) => {
    const { stdout } = spawnSync(join(at, 'node'), ['--version'], { encoding: 'utf8' });
    return /^v(1\d|20)\./.test(stdout);
  });
}
