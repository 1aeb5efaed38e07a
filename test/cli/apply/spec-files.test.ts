import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Readable } from 'node:stream';
import { beforeEach, expect, test } from '@jest/globals';
import { stringify } from 'yaml';
import { planApply } from '../../../cli/apply/apply-steps.ts';
import { readSpecFiles, type SpecFile } from '../../../cli/apply/spec-files.ts';
import type { ClusterSpec } from '../../../lib/spec/cluster-spec.ts';
import type { ListedCluster } from '../../../lib/table/clusters.ts';
import { TableError } from '../../../lib/table/key-value-table.ts';
import { aClusterSpec } from '../../support/a-cluster-spec.ts';
import { aCluster } from '../../support/a-fleet-status.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

let folder: string;

beforeEach(() => {
  folder = temporaryFolder();
  mkdirSync(join(folder, 'deeper'));
});

function specOf(name: string): string {
  return `name: ${name}\nmode: observe\nkubeconfig: { ssm: /a }\napiServers: [{ address: 203.0.113.7 }]\n`;
}

function write(name: string, cluster: string): string {
  const file = join(folder, name);
  writeFileSync(file, specOf(cluster));
  return file;
}

async function read(named: readonly string[], { stdin = '' } = {}) {
  const { files, faults } = await readSpecFiles(named, Readable.from([Buffer.from(stdin)]));
  return { names: files.map(({ spec }) => spec.name), faults, files };
}

test('the spec files of a folder are the files whose names end in yml, yaml or json, in the natural order of their names, without files of subfolders', async () => {
  const all = ['b-10.yaml', 'b-2.yml', 'a.json', 'D.YML', 'notes.txt', 'deeper/e.yml'];
  for (const [at, name] of all.entries()) write(name, `c${at}`);
  symlinkSync('deeper', join(folder, 'link-to-folder.yml'));
  const { faults, files } = await read([folder]);
  expect(faults).toEqual([]);
  expect(files.map(({ place }) => basename(place))).toEqual(['a.json', 'b-2.yml', 'b-10.yaml', 'D.YML']);
});

test.each([
  ['without a spec', 'kind: Cluster}', 'apiVersion'],
  ['without valid specs', 'kind: ClusterList, items: [7]}', 'apiVersion'],
  ['with a key twice', `kind: Cluster, kind: Cluster, spec: ${JSON.stringify(aClusterSpec())}}`, 'must be unique'],
  ['that was cut', `kind: Cluster, spec: ${JSON.stringify(aClusterSpec())}`, 'end with a }'],
])('a document with the apiVersion of kbctl output %s is a fault', async (_, rest, fault) => {
  const { names, faults } = await read(['-'], { stdin: `{apiVersion: kbctl/v1, ${rest}` });
  expect([names, faults]).toEqual([[], [expect.stringContaining(fault)]]);
});

test('spec files are read from standard input, and can begin with a byte order mark', async () => {
  const { names, files } = await read(['-'], { stdin: `\ufeff${specOf('piped')}` });
  expect(names).toEqual(['piped']);
  expect(files).toMatchObject([{ place: 'standard input' }]);
});

test('each YAML document of a file is read as one spec', async () => {
  const stdin = `# the fleet\n${specOf('a')}---\n---\n# another\n${specOf('b')}...\n`;
  expect(await read(['-'], { stdin })).toMatchObject({ names: ['a', 'b'], faults: [] });
  const faults = [expect.stringMatching(/^standard input, spec 3: [\s\S]*nmae/)];
  expect(await read(['-'], { stdin: `${stdin}---\nnmae: c\n` })).toMatchObject({ names: ['a', 'b'], faults });
});

test('each fault in a ClusterList is reported with the name and the value of its field', async () => {
  const items = [{ spec: aClusterSpec({ maxEventsPerPass: -7 }) }, { spec: aClusterSpec({ name: 'B' }) }];
  const list = { apiVersion: 'kbctl/v1', kind: 'ClusterList', items };
  expect(await read(['-'], { stdin: stringify(list) })).toMatchObject({
    names: [],
    faults: [expect.stringContaining('maxEventsPerPass: -7 is not'), expect.stringContaining('name: "B" is not')],
  });
});

test('a file is read once even if it is named twice, through its folder or through a link', async () => {
  const file = write('a.yml', 'a');
  symlinkSync(file, join(folder, 'link.yml'));
  const { names, faults } = await read([file, file, folder, '-', '-'], { stdin: specOf('b') });
  expect({ names, faults }).toEqual({ names: ['a', 'b'], faults: [] });
});

test('a link in a folder to a file outside that folder is not followed, and the text of the file is not printed', async () => {
  const outside = join(temporaryFolder(), 'outside.yml');
  writeFileSync(outside, specOf('outside'));
  symlinkSync(outside, join(folder, 'link.yml'));
  const { names, faults } = await read([folder]);
  expect([names, faults]).toEqual([[], [expect.stringContaining('link.yml is a link to a file outside')]]);
});

test('the fault for a file that contains only text, such as a token, does not quote the text', async () => {
  const file = join(folder, 'token.yml');
  writeFileSync(file, 'a-token-of-forty-letters-that-is-secret!');
  const { faults } = await read([file]);
  expect(faults).toEqual([expect.stringContaining('is text')]);
  expect(faults.join()).not.toContain('forty-letters');
});

test('a FIFO is refused, and a file or standard input is refused if it has more than 16 MiB', async () => {
  const large = Buffer.alloc(16 * 1024 * 1024 + 1);
  execFileSync('mkfifo', [join(folder, 'pipe.yml')]);
  writeFileSync(join(folder, 'large.yml'), large);
  const { names, faults } = await read([folder, '-'], { stdin: large.toString() });
  expect(names).toEqual([]);
  expect(faults).toEqual([
    expect.stringContaining('large.yml has more than 16777216 bytes: split it'),
    expect.stringContaining('pipe.yml is not a regular file'),
    'standard input has more than 16777216 bytes: split it',
  ]);
});

test('a valid spec file is read even if other files are faulty, and each fault is reported', async () => {
  write('good.yml', 'good');
  writeFileSync(join(folder, 'empty.yml'), '');
  writeFileSync(join(folder, 'utf16.yml'), '\ufeffname: x\n', 'utf16le');
  symlinkSync('nowhere', join(folder, 'dead.yml'));
  const { names, faults } = await read([folder]);
  expect(names).toEqual(['good']);
  expect(faults).toEqual([
    expect.stringContaining('dead.yml (ENOENT)'),
    expect.stringMatching(/empty\.yml: 1 fault\n/),
    expect.stringContaining('utf16.yml is not UTF-8 text'),
  ]);
});

function fileOf(name: string, fields: Partial<ClusterSpec> = {}): SpecFile {
  return { place: `${name}.yml`, spec: aClusterSpec({ name, ...fields }) };
}

const plan = (files: readonly SpecFile[], clusters: readonly ListedCluster[], prune: boolean) =>
  planApply(files, { clusters, unreadable: [] }, prune).map(({ action, name }) => `${action} ${name}`);

test('the plan of cluster apply lists the changes in the order of the files, and then the removals', () => {
  const files = [fileOf('new'), fileOf('same'), fileOf('other', { mode: 'observe' })];
  const known = [aCluster({ name: 'gone' }), aCluster({ name: 'other' }), aCluster({ name: 'same' })];
  expect(plan(files, known, true)).toEqual(['create new', 'keep same', 'change other', 'remove gone']);
  expect(plan(files.slice(1, 2), known, false)).toEqual(['keep same']);
});

test('the plan of cluster apply replaces a registration that cannot be read', () => {
  const unreadable = [{ name: 'broken', error: new TableError('Corrupt', 'does not parse') }];
  const steps = planApply([fileOf('broken')], { clusters: [], unreadable }, false);
  expect(steps.map(({ intention }) => intention)).toEqual(['to be replaced: its registration cannot be read']);
});
