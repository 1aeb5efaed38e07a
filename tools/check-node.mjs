// Loaded with `node --import` before anything that an old Node cannot parse.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** An environment variable of the process that {@link runWith} starts. With this variable, the process starts no other process. */
const STARTED = 'KBCTL_STARTED_BY_CHECK';
const isStarted = process.env[STARTED] !== undefined;
delete process.env[STARTED];

// An installed package has a bundle for Node 22; the sources of this repository need Node 24.
const least = existsSync(new URL('../cli/main.ts', import.meta.url)) ? '24' : '22.19';
if (process.versions.node.localeCompare(least, 'en', { numeric: true }) < 0) {
  const own = ownNode(process.platform, process.arch);
  if (own === undefined || isStarted || process.execPath === realpathSync(own)) {
    console.error(
      `kube-bootstrap-controller needs Node.js ${least} or later and this is ${process.version} (${process.execPath}): install a later one; in the repository, run it through npm after "npm ci", which brings Node 24.`,
    );
    process.exit(1);
  }
  process.exit(await runWith(own));
}

/**
 * Returns the path of the Node.js that "npm ci" installs. The link in node_modules/.bin is not used, because npm 10 removes it
 * together with the packages for other platforms.
 */
function ownNode(platform, arch) {
  const [system, program] = platform === 'win32' ? ['win', 'node.exe'] : [platform, 'node'];
  return [`node-${system}-${arch}`, `node-bin-${system}-${arch}`]
    .map((name) => fileURLToPath(new URL(`../node_modules/${name}/bin/${program}`, import.meta.url)))
    .find((file) => existsSync(file));
}

async function runWith(node) {
  const PATH = [path.dirname(node), process.env.PATH].join(path.delimiter);
  const args = [...process.execArgv, ...process.argv.slice(1)];
  const child = spawn(node, args, { stdio: 'inherit', env: { ...process.env, PATH, [STARTED]: 'yes' } });
  // A terminal sends SIGINT (Ctrl-C) to both processes, but `kill` sends a signal only to this process. kbctl counts
  // two signals in quick succession as one signal.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  const [code] = await once(child, 'exit');
  return code ?? 1;
}
