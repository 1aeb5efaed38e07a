import { existsSync, globSync, readFileSync } from 'node:fs';

const ROOT = `${import.meta.dirname}/../..`;

/** A defect that is put into the code while it is loaded, and that the simulation must find. */
export interface Plant {
  readonly id: string;
  readonly defect: string;
  readonly edits: readonly Edit[];
}

export interface Edit {
  readonly file: string;
  /** The text to replace, which occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
}

const edit = (file: string, find: string, replace: string): Edit => ({ file, find, replace });

/**
 * Edits that apply to every run. Limits are reached within minutes: the table keeps fewer earlier write ids, and items expire sooner.
 * An item of the table is decoded once for all its readers, which takes a sixth of the time of a run.
 */
export const SCALES: readonly Edit[] = [
  edit('lib/table/stored-item.ts', 'const WRITES_KEPT = 64;', 'const WRITES_KEPT = 1;'),
  edit(
    'lib/table/dynamodb/dynamodb-items.ts',
    'const SWEEP_DELAY_MS = 60 * 60 * 1000;',
    'const SWEEP_DELAY_MS = 5_000;',
  ),
  edit('lib/repair/address-turns.ts', 'const MOST_FAULTS = 200;', 'const MOST_FAULTS = 8;'),
  edit(
    'lib/table/dynamodb/dynamodb-items.ts',
    'export function itemFrom(attributes: Attributes): Item {',
    'const ITEMS = new WeakMap(); export function itemFrom(attributes: Attributes): Item { const item = ITEMS.get(attributes) ?? readItem(attributes); ITEMS.set(attributes, item); return item; } function readItem(attributes: Attributes): Item {',
  ),
  edit(
    'lib/table/stored-item.ts',
    'const parsed = shape.safeParse(item.value);',
    'const parsed = VALUES.get(item)?.get(shape) ?? shape.safeParse(item.value); VALUES.set(item, new Map(VALUES.get(item)).set(shape, parsed));',
  ),
  edit('lib/table/stored-item.ts', 'const FIRST_SCHEMA = 1;', 'const FIRST_SCHEMA = 1; const VALUES = new WeakMap();'),
  edit(
    'lib/table/clusters.ts',
    'export function decodeRegistration(item: Item): RegisteredCluster | undefined {',
    'const READ = new WeakMap(); export function decodeRegistration(item: Item): RegisteredCluster | undefined { const read = READ.get(item) ?? readRegistration(item); READ.set(item, read); return read; } function readRegistration(item: Item): RegisteredCluster | undefined {',
  ),
  edit('lib/table/requests.ts', 'const KEPT_MS = 24 * 60 * 60 * 1000;', 'const KEPT_MS = 90_000;'),
  edit('lib/table/leases.ts', 'Math.max(0, ...ends) + REMEMBERED_MS', 'Math.max(0, ...ends) + REMEMBERED_MS / 7_200'),
];

export const PLANTS: readonly Plant[] = plantsIn(`${import.meta.dirname}/plants.txt`);

/** Parses a file of plants, which empty lines separate: the id and the defect, then a file, its old lines and its new lines. */
export function plantsIn(path: string): readonly Plant[] {
  return readFileSync(path, 'utf8').trim().split(/\n\n+/).map(plantOf);
}

function plantOf(block: string): Plant {
  const [, id, defect = '', edits = ''] = /^(\S+): (.*)\n([\s\S]*)$/.exec(block) ?? [];
  if (id === undefined) throw new Error(`a plant begins with "id: defect" and a file, not with: ${block}`);
  return { id, defect, edits: edits.split(/\n(?=\w)/).map(editOf) };
}

function editOf(lines: string): Edit {
  const [file = '', ...changed] = lines.split('\n');
  const linesOf = (mark: string) => changed.flatMap((line) => (line.startsWith(mark) ? line.slice(mark.length) : []));
  const find = linesOf('- ').join('\n');
  return edit(fileWith(find, file), find, linesOf('+ ').join('\n'));
}

/** Returns the named file, or the file of the product that has the text now if the code was moved. */
function fileWith(text: string, file: string): string {
  const isIn = (each: string) => readFileSync(`${ROOT}/${each}`, 'utf8').split(text).length === 2;
  if (existsSync(`${ROOT}/${file}`) && isIn(file)) return file;
  const moved = ['lib', 'cli'].flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: ROOT })).filter(isIn);
  return moved.length === 1 ? (moved[0] ?? file) : file;
}
