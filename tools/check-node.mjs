// Loaded with `node --import` before anything that an old Node cannot parse.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  // npm 11 links the Node 24 of "npm ci" into .bin. npm 10 removes that link with the packages of other platforms.
  const folder = `../node_modules/node-${process.platform}-${process.arch}/bin`;
  const own = fileURLToPath(new URL(`${folder}/node`, import.meta.url));
  if (!existsSync(own) || process.execPath === own) {
    console.error(
      `kube-bootstrap-controller needs Node.js 22.19 or later and this is ${process.version} (${process.execPath}): install a later one; in the repository, run it through npm after "npm ci", which brings Node 24.`,
    );
    process.exit(1);
  }
  process.exit(await runWith(own));
}

/** Runs this program again with another Node, and returns its exit code. */
async function runWith(node) {
  const PATH = [path.dirname(node), process.env.PATH].join(path.delimiter);
  const args = [...process.execArgv, ...process.argv.slice(1)];
  const child = spawn(node, args, { stdio: 'inherit', env: { ...process.env, PATH } });
  // A terminal sends Ctrl-C to both.
  process.on('SIGINT', () => undefined);
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  const [code] = await once(child, 'exit');
  return code ?? 1;
}
