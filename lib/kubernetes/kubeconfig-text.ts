import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import * as yaml from 'js-yaml';
import { boundedText, codeOf, isRecord, type JsonRecord } from '../util/values.ts';
import { ClusterError } from './cluster-port.ts';
import { FIELDS, type Field, type Fields, type Found, type Kind, type Reader } from './kubeconfig-fields.ts';

export interface KubeconfigSource {
  readonly name: string;
  readonly reader: Reader;
  /** The folder to which relative file names refer. */
  readonly folder: string;
}

/** The longest stored kubeconfig, in characters. A secret in Secrets Manager has at most this number of bytes. */
const LONGEST_STORED_TEXT = 64 * 1024;
/** The longest file, in bytes. It may be longer than a stored text, because it may have many clusters. */
const LONGEST_FILE = 1024 * 1024;

/** Characters of YAML syntax, which base64 does not contain. The parser takes a third of a second for 60,000 of them. */
const MARKS = /[^A-Za-z0-9+/=. ]/g;
const MOST_STORED_MARKS = 8_000;

const KEEP_ONE = 'Keep the cluster that is used, and no other';
const WRITE_AGAIN = 'Write it again, for example with kubectl config view --raw';
const NAME_A_CONFIG = 'Name a file of kind Config';
const DECODE = 'base64 --decode prints the kubeconfig';

/** Returns the error for a kubeconfig. `problem` and `remedy` may quote names of entries and files, but no other values. */
export function badKubeconfig(source: KubeconfigSource, problem: string, remedy: string): ClusterError {
  return new ClusterError('BadKubeconfig', `${source.name}: ${problem}. ${remedy}.`);
}

/** Reads a kubeconfig or a file that it names. Throws a `ClusterError` with code `BadKubeconfig`. */
export async function readFile(file: string, source: KubeconfigSource): Promise<Buffer> {
  const path = resolve(source.folder, file);
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of createReadStream(path)) {
      length += chunk.length;
      // The file may be endless.
      if (length > LONGEST_FILE) {
        const problem = `${path} is longer than ${LONGEST_FILE} bytes`;
        throw badKubeconfig(source, problem, 'Keep what this cluster needs, and no more');
      }
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } catch (error) {
    if (error instanceof ClusterError) throw error;
    const remedy = 'Name a file that exists and that this user may read';
    throw badKubeconfig(source, `cannot read ${path} (${codeOf(error)})`, remedy);
  }
}

/** Reads the top level of a kubeconfig. Throws a `ClusterError` of code `BadKubeconfig`. No other code parses kubeconfigs. */
export function readKubeconfig(text: string, source: KubeconfigSource): Found<'kubeconfig'> {
  const isStored = source.reader === 'stored';
  if (isStored && text.length > LONGEST_STORED_TEXT) {
    throw badKubeconfig(source, `is longer than ${LONGEST_STORED_TEXT} characters`, KEEP_ONE);
  }
  if (isStored && (text.match(MARKS)?.length ?? 0) > MOST_STORED_MARKS) {
    throw badKubeconfig(source, `has more than ${MOST_STORED_MARKS} line breaks and punctuation marks`, KEEP_ONE);
  }
  if (text.includes('\0')) throw badKubeconfig(source, 'has zero bytes: it is probably UTF-16', 'Save it as UTF-8');
  const value = yamlValue(text.replace(/^\uFEFF/, ''), source);
  if (typeof value === 'string' && /^[\w+/=\s-]{40,}$/.test(value)) {
    throw badKubeconfig(source, 'is base64 and not a kubeconfig', `Decode it: ${DECODE}`);
  }
  if (!isRecord(value)) throw badKubeconfig(source, 'is not a kubeconfig', NAME_A_CONFIG);
  const top = found('kubeconfig', 'its top level', value, source);
  const { kind = 'Config', apiVersion = 'v1' } = top.fields;
  if (kind === 'Secret') {
    const remedy = `Take the kubeconfig out of the value in its data, and decode it: ${DECODE}`;
    throw badKubeconfig(source, 'is a Secret of Kubernetes and not a kubeconfig', remedy);
  }
  if (kind === 'Config' && apiVersion === 'v1') return top;
  throw badKubeconfig(source, 'is not of kind Config and apiVersion v1', NAME_A_CONFIG);
}

/** Decodes a text with the tag `!!binary`, which adds one more level of base64. */
const binaryText = {
  ...yaml.binaryTag,
  resolve: (encoded: string) => {
    const bytes = yaml.binaryTag.resolve(encoded, true, yaml.binaryTag.tagName);
    return bytes === yaml.NOT_RESOLVED ? bytes : Buffer.from(bytes).toString();
  },
};
const mapWithoutMerge = {
  ...yaml.mapTag,
  addPair: (map: Record<string, unknown>, key: unknown, value: unknown) =>
    key === '<<' ? 'merge key' : yaml.mapTag.addPair(map, key, value),
};
/** YAML in which words such as `yes` and `on` are booleans, as in kubectl's parser. */
const SCHEMA = yaml.CORE_SCHEMA.withTags(yaml.boolYaml11Tag, binaryText, mapWithoutMerge);

/** The problem and the remedy that replace a message of the parser, because the parser may quote a private key. */
const REFUSED_SYNTAX: readonly (readonly [reason: RegExp, problem: string, remedy: string])[] = [
  [/duplicated mapping key/, 'has a key twice', 'Remove one of them'],
  [/alias/, 'has a YAML alias', 'Write its value instead'],
  [/merge key/, 'has a YAML merge key (<<)', 'Write the merged fields instead'],
  [/unknown \w+ tag|cannot resolve/, 'has a YAML tag that a kubeconfig does not need', 'Remove the tag'],
  [/complex keys|maxDepth/, 'has a list or mapping as a key, or more than 100 levels', WRITE_AGAIN],
];

function yamlValue(text: string, source: KubeconfigSource): unknown {
  let documents: unknown[];
  try {
    documents = yaml.loadAll(text, { maxAliases: 0, schema: SCHEMA });
  } catch (error) {
    const { reason = '', mark } = error instanceof yaml.YAMLException ? error : {};
    const [, problem = 'is not YAML', remedy = WRITE_AGAIN] =
      REFUSED_SYNTAX.find(([known]) => known.test(reason)) ?? [];
    throw badKubeconfig(source, `${problem} (${mark ? `line ${mark.line + 1}` : 'its parser failed'})`, remedy);
  }
  const [first, second] = documents.filter((document) => document !== null && document !== undefined);
  if (second === undefined) return first;
  const start = [...text.matchAll(/^---\s/gm)].at(documents.indexOf(second) - documents.length);
  const line = text.slice(0, start?.index).split('\n').length;
  throw badKubeconfig(source, `has a second YAML document (line ${line})`, 'Remove it');
}

/** Returns whether a field has no value. An empty list where a text is expected is a value, but of the wrong type. */
function isAbsent(value: unknown, { type }: Partial<Field> = {}): boolean {
  if (typeof value !== 'object' || value === null) return value === undefined || value === null || value === '';
  return type !== 'string' && type !== 'boolean' && Object.keys(value).length === 0;
}

function found<Of extends Kind>(kind: Of, place: string, mapping: JsonRecord, source: KubeconfigSource): Found<Of> {
  const fields: Record<string, unknown> = {};
  const ignored: string[] = [];
  const known = new Map<string, Field>(Object.entries(FIELDS[kind]));
  const present = Object.entries(mapping).filter(([name, value]) => !isAbsent(value, known.get(name)));
  for (const [name, value] of present) {
    const { type, refusal } = known.get(name) ?? {};
    if (refusal?.by.includes(source.reader)) {
      throw badKubeconfig(source, `${place} has ${name}, and ${refusal.reason}`, refusal.remedy);
    }
    // An unusual name of an unknown key is not quoted, because it may be a misplaced secret.
    if (type === undefined) ignored.push(`${kind}.${/^[A-Za-z-]{1,40}$/.test(name) ? name : '(a key)'}`);
    else if (type === (Array.isArray(value) ? 'list' : typeof value)) fields[name] = value;
    else throw badKubeconfig(source, `${name} of ${place} has the wrong type`, WRITE_AGAIN);
  }
  return { place, fields: fields as Fields<Of>, ignored };
}

/** Finds the entry with this name. Throws `BadKubeconfig` if no entry or more than one entry has the name. */
export function entryOf<Of extends Kind>(source: KubeconfigSource, kind: Of, name = '', list: readonly unknown[] = []) {
  const entries = list.filter(isRecord);
  const [entry, second] = entries.filter((one) => one['name'] === name);
  const place = `${kind} "${boundedText(name, 60)}"`;
  if (second !== undefined) throw badKubeconfig(source, `has two entries for ${place}`, 'Remove one of them');
  const mapping = entry?.[kind] ?? {};
  if (!isRecord(mapping)) throw badKubeconfig(source, `${place} is not a mapping`, WRITE_AGAIN);
  if (entry !== undefined) return found(kind, place, mapping, source);
  const names = entries.map((one) => one['name']).filter((one) => typeof one === 'string');
  const problem = name === '' ? `names no ${kind} to use` : `has no ${place}`;
  throw badKubeconfig(source, problem, `Name one of its ${kind}s: ${boundedText(names.join(', ')) || 'it has none'}`);
}
