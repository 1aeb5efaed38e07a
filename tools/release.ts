// "npm run release": creates release/<version>, with everything that a deployment without Node.js or a clone needs.
import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { packageHashes, releaseTemplate } from '../deploy/compiled-template.ts';

const root = path.join(import.meta.dirname, '..');
const { version }: { readonly version: string } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
const folder = path.join(root, 'release', version);
const packaged = path.join(root, '.serverless');

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });

const env = { ...process.env, AWS_ACCESS_KEY_ID: 'none', AWS_SECRET_ACCESS_KEY: 'none', AWS_REGION: 'us-east-1' };
const serverless = path.join(root, 'node_modules', 'serverless', 'bin', 'serverless.js');
run(process.execPath, serverless, 'package', '--stage', 'release', '--param', 'secretsPrefix=');
for (const name of readdirSync(packaged).filter((file) => file.endsWith('.zip'))) {
  cpSync(path.join(packaged, name), path.join(folder, name));
}
const compiled = JSON.parse(readFileSync(path.join(packaged, 'cloudformation-template-update-stack.json'), 'utf8'));
writeFileSync(
  path.join(folder, 'template.json'),
  `${JSON.stringify(releaseTemplate(compiled, version, packageHashes(packaged)), null, 1)}\n`,
);
const copied = ['deploy/policies', 'deploy/terraform', '.cache/maps', 'tools/symbolise.mjs'];
for (const name of copied) cpSync(path.join(root, name), path.join(folder, path.basename(name)), { recursive: true });
run(process.execPath, 'tools/build-cli.mjs', '--whole', path.join(folder, 'kbctl.mjs'));
writeFileSync(path.join(folder, 'sbom.cdx.json'), run('npm', 'run', '--silent', 'sbom'));

const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.\w+$/.test(name))
  .sort();
const sums = files.map((name) => `${hash('sha256', readFileSync(path.join(folder, name)))}  ${name}\n`);
writeFileSync(path.join(folder, 'SHA256SUMS'), sums.join(''));
console.log(`release ${version}: ${files.length} files in ${path.relative(process.cwd(), folder)}`);

function run(command: string, ...args: readonly string[]): Buffer {
  return execFileSync(command, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 2 ** 26 });
}
