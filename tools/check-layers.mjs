// Checks that imports follow the arrows of .dependency-cruiser.mjs, in the folder given or in this repository.
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { cruise } from 'dependency-cruiser';
import config from '../.dependency-cruiser.mjs';

const FOLDERS = ['functions', 'lib', 'cli', 'local'];

const root = path.resolve(process.argv[2] ?? path.join(import.meta.dirname, '..'));
const folders = FOLDERS.filter((folder) => existsSync(path.join(root, folder)));
const files = folders.flatMap((folder) =>
  readdirSync(path.join(root, folder), { recursive: true })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => path.posix.join(folder, name)),
);

const { output } = await cruise(folders, { ...config.options, ruleSet: config, validate: true, baseDir: root });
const seen = new Set(output.modules.map((module) => module.source));
const violations = output.summary.violations;

/** Files that dependency-cruiser did not read. Without a parser for TypeScript it reads nothing and reports no violation. */
const unseen = files.filter((file) => !seen.has(file));
const blind = files.length === 0 || output.summary.totalDependenciesCruised === 0;

for (const { rule, from, to, cycle } of violations) {
  const where = cycle === undefined ? to : cycle.map((step) => step.name ?? step).join(' → ');
  console.error(`${rule.name}: ${from} → ${where}`);
}
for (const file of unseen) console.error(`not seen: ${file}`);
if (blind) console.error(`saw no imports in ${root}: is @swc/core installed?`);

if (violations.length > 0 || unseen.length > 0 || blind) {
  console.error(`layers: ${violations.length} violations, ${unseen.length} of ${files.length} files not seen`);
  process.exit(1);
}
console.log(`layers: ${files.length} files, ${output.summary.totalDependenciesCruised} imports, no violation`);
