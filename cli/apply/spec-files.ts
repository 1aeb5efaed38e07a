import { constants } from 'node:fs';
import { open, readdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { type Document, isScalar, parseAllDocuments } from 'yaml';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import { codeOf } from '../../lib/util/values.ts';
import { API_VERSION } from '../output.ts';
import { compareNames } from '../spec/names.ts';
import { parseClusterSpec } from '../spec/parse-cluster-spec.ts';
import { describeFaults } from '../spec/spec-fault.ts';
import { type SpecResult, validateClusterSpec } from '../spec/validate-cluster-spec.ts';
import { writtenSpec } from '../spec/written-spec.ts';

export interface SpecFile {
  readonly place: string;
  readonly spec: ClusterSpec;
}

export interface SpecFiles {
  readonly files: readonly SpecFile[];
  /** Blocks of lines: one for each unreadable file, faulty spec, and name that several specs have. */
  readonly faults: readonly string[];
}

type Stdin = AsyncIterable<Uint8Array>;

const SPEC_NAME = /\.(ya?ml|json)$/i;
const STDIN = '-';
const LARGEST_FILE = 16 * 1024 * 1024;

interface Faulty {
  readonly fault: string;
}

/**
 * Reads and checks all specs of the given files and folders; `-` is the standard input. In a folder, it reads the files that
 * end in .yml, .yaml or .json. It reads a file once, even if the file is named twice or through a link.
 */
export async function readSpecFiles(named: readonly string[], stdin: Stdin): Promise<SpecFiles> {
  const reads: (SpecFile | Faulty)[] = [];
  const seen = new Set<string>();
  for (const name of named) {
    const found = await filesOf(name);
    if ('fault' in found) reads.push(found);
    for (const file of 'fault' in found ? [] : found) {
      const real = await realpath(file).catch(() => file);
      if (!seen.has(real)) reads.push(...(await readFileOf(file, stdin)));
      seen.add(real);
    }
  }
  const files = reads.filter((read) => 'spec' in read);
  const faults = reads.flatMap((read) => ('fault' in read ? [read.fault] : []));
  return { files, faults: [...faults, ...duplicateNames(files)] };
}

async function filesOf(named: string): Promise<string[] | Faulty> {
  if (named === STDIN || !(await isFolder(named))) return [named];
  try {
    const files: string[] = [];
    const inside = `${await realpath(named)}${path.sep}`;
    for (const name of (await readdir(named)).sort(compareNames)) {
      const file = path.join(named, name);
      if (!SPEC_NAME.test(name) || (await isFolder(file))) continue;
      const real = await realpath(file).catch(() => inside);
      if (!real.startsWith(inside)) {
        return { fault: `${file} is a link to a file outside ${named}: name that file with -f` };
      }
      files.push(file);
    }
    return files;
  } catch (error) {
    return unreadable(named, error);
  }
}

async function isFolder(file: string): Promise<boolean> {
  return stat(file).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

async function readFileOf(file: string, stdin: Stdin): Promise<(SpecFile | Faulty)[]> {
  const isStdin = file === STDIN;
  const place = isStdin ? 'standard input' : file;
  let text: string;
  try {
    const bytes = isStdin ? await bounded(stdin) : await bytesOf(file);
    if (typeof bytes === 'string') return [{ fault: `${place} ${bytes}` }];
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    return [unreadable(place, error)];
  }
  return resultsIn(text).map((result, index, { length }) => {
    if ('spec' in result) return { place, spec: result.spec };
    return { fault: describeFaults(length === 1 ? place : `${place}, spec ${index + 1}`, result.faults) };
  });
}

/** Returns the bytes of a file, or the reason why it is not read. Opening a FIFO does not wait for its writer. */
async function bytesOf(file: string): Promise<Buffer | string> {
  await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  if (!(await handle.stat()).isFile()) return 'is not a regular file: use - to read standard input';
  return await bounded(handle.createReadStream());
}

async function bounded(pieces: AsyncIterable<Uint8Array>): Promise<Buffer | string> {
  const read: Uint8Array[] = [];
  let length = 0;
  for await (const piece of pieces) {
    length += piece.length;
    if (length > LARGEST_FILE) return `has more than ${LARGEST_FILE} bytes: split it`;
    read.push(piece);
  }
  return Buffer.concat(read);
}

/** Returns a result for each YAML document, and for each cluster that `kbctl cluster get -o yaml` or `-o json` printed. */
function resultsIn(text: string): SpecResult[] {
  const documents = parseAllDocuments(text);
  if (!Array.isArray(documents) || documents.some(({ errors }) => errors.length > 0)) return [parseClusterSpec(text)];
  const filled = documents.filter(
    ({ contents }) => contents !== null && !(isScalar(contents) && contents.value === null),
  );
  if (filled.length === 0) return [parseClusterSpec(text)];
  return filled.flatMap((document) => {
    const [start, , end] = document.range;
    return printedSpecs(document) ?? [parseClusterSpec(filled.length === 1 ? text : text.slice(start, end))];
  });
}

function printedSpecs(document: Document): SpecResult[] | undefined {
  try {
    const printed = document.toJS() as Printed & { readonly items: readonly Printed[] };
    if (printed.apiVersion !== API_VERSION) return undefined;
    const clusters = printed.kind === 'ClusterList' ? printed.items : [printed];
    return clusters.map(({ spec }) => validateClusterSpec(JSON.parse(JSON.stringify(writtenSpec(spec)))));
  } catch {
    return undefined;
  }
}

interface Printed {
  readonly apiVersion?: unknown;
  readonly kind?: unknown;
  readonly spec: ClusterSpec;
}

function unreadable(place: string, error: unknown): Faulty {
  const code = codeOf(error);
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return { fault: `${place} is not UTF-8 text: save it as UTF-8` };
  return { fault: `Cannot read ${place} (${code}): use an existing, readable file` };
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
