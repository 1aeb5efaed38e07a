// "npm run deploy": deploys with the osls of this project, never with another program named "serverless", whose version
// 4 is closed and requires an account.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';

const folder = path.join(import.meta.dirname, '..', 'node_modules', 'serverless');

const { name, bin } = manifest();
if (name !== 'osls') {
  console.error(
    `node_modules/serverless is "${name}" and not osls: run "npm ci", which installs the versions of package-lock.json.`,
  );
  process.exit(1);
}

const program = path.join(folder, typeof bin === 'string' ? bin : bin.serverless);
const { status, signal } = spawnSync(process.execPath, [program, 'deploy', ...process.argv.slice(2)], {
  // A profile with MFA asks for its code there.
  stdio: 'inherit',
});
if (signal !== null) console.error(`The deployment was ended by ${signal}; it can be repeated.`);
process.exit(status ?? 1);

function manifest() {
  try {
    return JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  } catch (error) {
    return { name: `missing (${error.code})` };
  }
}
