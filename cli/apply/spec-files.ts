import { constants } from 'node:fs';
import { open, readdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import { codeOf } from '../../lib/util/values.ts';
import { CliError, configurationError } from '../errors.ts';
import { compareNames } from '../spec/names.ts';
import { parseClusterSpecs } from '../spec/parse-cluster-spec.ts';
import { describeFaults } from '../spec/spec-fault.ts';

export interface SpecFile {
  readonly place: string;
  readonly spec: ClusterSpec;
}

export interface SpecFiles {
  readonly files: readonly SpecFile[];
  /** Blocks of lines: one for each unreadable file, each faulty spec, and each name that several specs have. */
  readonly faults: readonly string[];
}

const SPEC_NAME = /\.(ya?ml|json)$/i;
const STDIN = '-';
const LARGEST_FILE = 16 * 1024 * 1024;

/** Reads and checks the specs of the given files and folders; `-` is the standard input. Reads each file only once. */
export async function readSpecFiles(named: readonly string[], stdin: AsyncIterable<Uint8Array>): Promise<SpecFiles> {
  const reads: (SpecFile | string)[] = [];
  const seen = new Set<string>();
  for (const name of named) {
    for (const file of await filesOf(name)) {
      const real = await realpath(file).catch(() => file);
      if (!seen.has(real)) reads.push(...(await specsIn(file, name, stdin)));
      seen.add(real);
    }
  }
  const files = reads.filter((read) => typeof read !== 'string');
  const faults = reads.filter((read) => typeof read === 'string');
  return { files, faults: [...faults, ...duplicateNames(files)] };
}

/** Returns the entries of a folder that are named like spec files. If `named` is a file, or cannot be read, returns `named`. */
async function filesOf(named: string): Promise<readonly string[]> {
  const names = await readdir(named).catch(() => undefined);
  if (named === STDIN || names === undefined) return [named];
  const chosen = names.filter((name) => SPEC_NAME.test(name)).sort(compareNames);
  return chosen.map((name) => path.join(named, name));
}

/** Returns the specs and faults of a file; nothing for a folder. `named` is the file itself, or the folder of the file. */
async function specsIn(file: string, named: string, stdin: AsyncIterable<Uint8Array>): Promise<(SpecFile | string)[]> {
  const place = file === STDIN ? 'standard input' : file;
  let text: string;
  try {
    if (file !== named) {
      if ((await stat(file)).isDirectory()) return [];
      await refuseOutside(file, named);
    }
    text = file === STDIN ? await textOf(stdin) : await textInFile(file);
  } catch (error) {
    return [describeUnreadable(place, error)];
  }
  return parseClusterSpecs(text).map((result, index, { length }) => {
    if ('spec' in result) return { place, spec: result.spec };
    return describeFaults(length === 1 ? place : `${place}, spec ${index + 1}`, result.faults);
  });
}

/** @throws CliError if the file is a link to a file outside the folder, because messages about faults can quote that file */
async function refuseOutside(file: string, folder: string): Promise<void> {
  if ((await realpath(file)).startsWith(`${await realpath(folder)}${path.sep}`)) return;
  throw configurationError(`is a link to a file outside ${folder}: name that file with -f`);
}

async function textInFile(file: string): Promise<string> {
  // Without O_NONBLOCK, opening a FIFO would wait for its writer.
  await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  if ((await handle.stat()).isFile()) return await textOf(handle.createReadStream());
  throw configurationError('is not a regular file: use - to read standard input');
}

async function textOf(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let length = 0;
  let text = '';
  for await (const piece of pieces) {
    length += piece.length;
    if (length > LARGEST_FILE) throw configurationError(`has more than ${LARGEST_FILE} bytes: split it`);
    text += decoder.decode(piece, { stream: true });
  }
  return text + decoder.decode();
}

function describeUnreadable(place: string, error: unknown): string {
  if (error instanceof CliError) return `${place} ${error.message}`;
  const code = codeOf(error);
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return `${place} is not UTF-8 text: save it as UTF-8`;
  return `Cannot read ${place} (${code}): use an existing, readable file`;
}

function duplicateNames(files: readonly SpecFile[]): string[] {
  const places = Map.groupBy(files, ({ spec }) => spec.name);
  return [...places]
    .filter(([, same]) => same.length > 1)
    .map(([name, same]) => {
      const all = same.map(({ place }) => place).join(' and ');
      return `${all} are both specs of ${name}: a cluster must have one spec`;
    });
}
