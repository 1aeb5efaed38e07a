import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { parse } from 'yaml';
import type { ClusterSpec } from '../../lib/cluster/cluster-spec.ts';
import { parseClusterSpec } from '../../lib/spec/parse-cluster-spec.ts';
import { describeFaults } from '../../lib/spec/spec-fault.ts';
import { writtenSpec } from '../../lib/spec/written-spec.ts';
import { failureCode } from '../errors.ts';
import { API_VERSION } from '../output.ts';

/** A spec, and the file that it was read from. */
export interface SpecFile {
  /** As it is told: `clusters/prod-eu-1.yml`, `standard input`. */
  readonly place: string;
  /** Where what the spec names beside it is. */
  readonly folder: string;
  readonly spec: ClusterSpec;
}

export interface SpecFiles {
  readonly files: readonly SpecFile[];
  /** A block of lines for each file that has any, and for each name that two files have. */
  readonly faults: readonly string[];
}

export interface SpecFilesOptions {
  /** With what is in folders of folders. */
  readonly recursive: boolean;
  readonly stdin: AsyncIterable<Uint8Array>;
}

const SPEC_NAME = /\.(ya?ml|json)$/i;
const STDIN = '-';

/** Something to read: a path in bytes, since the name of a file need not be text. */
interface Source {
  readonly place: string;
  readonly folder: string;
  readonly path: Buffer | typeof STDIN;
}

/** Why nothing is to be had of a file. */
interface Faulty {
  readonly fault: string;
}

/**
 * All specs of the files and folders that were named (`-` is the standard input), every one of them checked before any is
 * used. Of a folder, what ends in .yml, .yaml or .json.
 */
export async function readSpecFiles(named: readonly string[], options: SpecFilesOptions): Promise<SpecFiles> {
  const reads: (SpecFile | Faulty)[] = [];
  const seen = new Set<string>();
  for (const name of named) {
    for (const source of await sourcesOf(name, options)) {
      if ('fault' in source) {
        reads.push(source);
        continue;
      }
      const identity = source.path === STDIN ? STDIN : await realpath(source.path).catch(() => source.place);
      if (!seen.has(identity)) reads.push(...(await readSource(source, options)));
      seen.add(identity);
    }
  }
  const files = reads.filter((read) => 'spec' in read);
  const faults = reads.flatMap((read) => ('fault' in read ? [read.fault] : []));
  return { files, faults: [...faults, ...saidTwice(files)] };
}

async function sourcesOf(named: string, { recursive }: SpecFilesOptions): Promise<(Source | Faulty)[]> {
  if (named === STDIN) return [{ place: 'standard input', folder: '.', path: STDIN }];
  try {
    if ((await stat(named)).isDirectory()) return await sourcesIn(Buffer.from(named), recursive);
    return [sourceAt(Buffer.from(named))];
  } catch (error) {
    return [unreadable(named, error)];
  }
}

async function sourcesIn(folder: Buffer, recursive: boolean): Promise<Source[]> {
  const names = (await readdir(folder, { encoding: 'buffer' })).sort(Buffer.compare);
  const sources: Source[] = [];
  for (const name of names) {
    const inside = Buffer.concat([folder, folder.toString().endsWith('/') ? Buffer.of() : Buffer.from('/'), name]);
    // A link that leads nowhere is told when it is read.
    const found = await stat(inside).catch(() => undefined);
    if (found?.isDirectory()) sources.push(...(recursive ? await sourcesIn(inside, recursive) : []));
    else if (SPEC_NAME.test(name.toString())) sources.push(sourceAt(inside));
  }
  return sources;
}

function sourceAt(file: Buffer): Source {
  return { place: file.toString(), folder: path.dirname(file.toString()), path: file };
}

async function readSource(
  { place, folder, path: at }: Source,
  { stdin }: SpecFilesOptions,
): Promise<(SpecFile | Faulty)[]> {
  let text: string;
  try {
    const bytes = at === STDIN ? await buffer(stdin) : await readFile(at);
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    return [unreadable(place, error)];
  }
  return (printedSpecs(text) ?? [text]).map((spec) => {
    const result = parseClusterSpec(spec);
    if ('faults' in result) return { fault: describeFaults(place, result.faults) };
    return { place, folder, spec: result.spec };
  });
}

/** The specs in what `kbctl cluster get -o yaml` or `-o json` printed, each as a file has it; `undefined` for any other text. */
function printedSpecs(text: string): string[] | undefined {
  try {
    const printed = parse(text) as { readonly kind?: unknown; readonly apiVersion?: unknown };
    if (printed.apiVersion !== API_VERSION) return undefined;
    const clusters =
      printed.kind === 'ClusterList' ? (printed as Printed).items : [printed as Printed['items'][number]];
    return clusters.map(({ spec }) => JSON.stringify(writtenSpec(spec)));
  } catch {
    // It is read as a spec, which says what is wrong with it.
    return undefined;
  }
}

interface Printed {
  readonly items: readonly { readonly spec: ClusterSpec }[];
}

function unreadable(place: string, error: unknown): Faulty {
  const code = failureCode(error);
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return { fault: `${place} is not UTF-8 text: save it as that` };
  return { fault: `${place} cannot be read (${code}): name a file that exists and that you may read` };
}

function saidTwice(files: readonly SpecFile[]): string[] {
  const places = Map.groupBy(files, ({ spec }) => spec.name);
  return [...places]
    .filter(([, same]) => same.length > 1)
    .map(([name, same]) => {
      const all = same.map(({ place }) => place).join(' and ');
      return `${all} are each the spec of ${name}: a cluster has one`;
    });
}
