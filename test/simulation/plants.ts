import { readFileSync } from 'node:fs';

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
 * Edits that apply to every run, so that limits are reached within minutes: the table keeps fewer earlier write ids, and items
 * expire sooner.
 */
export const SCALES: readonly Edit[] = [
  edit('lib/table/stored-item.ts', 'const WRITES_KEPT = 64;', 'const WRITES_KEPT = 1;'),
  edit(
    'lib/table/dynamodb/dynamodb-items.ts',
    'const SWEEP_DELAY_MS = 60 * 60 * 1000;',
    'const SWEEP_DELAY_MS = 5_000;',
  ),
  edit('lib/table/requests.ts', 'const KEPT_MS = 24 * 60 * 60 * 1000;', 'const KEPT_MS = 90_000;'),
  edit('lib/table/leases.ts', 'Math.max(0, ...ends) + REMEMBERED_MS', 'Math.max(0, ...ends) + REMEMBERED_MS / 7_200'),
];

const TEXT = readFileSync(`${import.meta.dirname}/plants.txt`, 'utf8');

export const PLANTS: readonly Plant[] = TEXT.trim().split('\n\n').map(plantOf);

/** Parses a plant: its id, its defect, and its edits (a file, the lines to find, the new lines). */
function plantOf(block: string): Plant {
  const [, id = '', defect = '', edits = ''] = /^(\S+): (.*)\n([\s\S]*)$/.exec(block) ?? [];
  return { id, defect, edits: edits.split(/\n(?=\w)/).map(editOf) };
}

function editOf(lines: string): Edit {
  const [file = '', ...changed] = lines.split('\n');
  const linesOf = (mark: string) => changed.flatMap((line) => (line.startsWith(mark) ? line.slice(mark.length) : []));
  return edit(file, linesOf('- ').join('\n'), linesOf('+ ').join('\n'));
}
