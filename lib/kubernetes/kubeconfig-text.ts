import { boolYaml11Tag, CORE_SCHEMA, defineScalarTag, loadAll, NOT_RESOLVED, YAMLException } from 'js-yaml';
import * as z from 'zod/mini';
import { boundedText, isRecord, type JsonRecord } from '../util/values.ts';
import { ClusterError } from './cluster-port.ts';

export interface KubeconfigSource {
  readonly name: string;
  /** The folder of relative file names. If absent, the kubeconfig may not name files. */
  readonly folder?: string;
}

/**
 * The maximum number of bytes of a secret in Secrets Manager. A user's own file may be longer, because it may have many clusters.
 */
const LONGEST_STORED_TEXT = 64 * 1024;
export const LONGEST_FILE = 1024 * 1024;

/** Characters of YAML syntax, which base64 does not contain. The parser takes a third of a second for 60,000 of them. */
const MARKS = /[^A-Za-z0-9+/=. ]/g;
const MOST_STORED_MARKS = 8_000;

const KEEP_ONE = 'Keep the cluster that is used, and no other';
const DECODE = 'base64 --decode prints the kubeconfig';

/** Returns the error for a kubeconfig. `problem` and `remedy` may quote names of entries, but no other values. */
export function badKubeconfig(source: KubeconfigSource, problem: string, remedy: string): ClusterError {
  return new ClusterError('BadKubeconfig', `${source.name}: ${problem}. ${remedy}.`);
}

/** Returns the text of a file. Windows PowerShell writes UTF-16 with a byte-order mark. */
export function textOfFile(bytes: Buffer): string {
  const [first, second] = bytes;
  if (first === 0xfe && second === 0xff) return new TextDecoder('utf-16be').decode(bytes);
  return new TextDecoder(first === 0xff && second === 0xfe ? 'utf-16le' : 'utf-8').decode(bytes);
}

/** The lists of a kubeconfig. Entries are not checked, because only those that are used must be right. */
export interface Kubeconfig {
  readonly currentContext: string;
  readonly clusters: readonly unknown[];
  readonly contexts: readonly unknown[];
  readonly users: readonly unknown[];
  /** The unknown fields of its top level. */
  readonly ignored: readonly string[];
}

/** Reads a kubeconfig. Throws a `ClusterError` with code `BadKubeconfig`. No other parser reads the text. */
export function readKubeconfig(text: string, source: KubeconfigSource): Kubeconfig {
  refuseLong(text, source);
  if (text.includes('\0')) throw badKubeconfig(source, 'has zero bytes: it is probably UTF-16', 'Save it as UTF-8');
  const config = configIn(yamlValue(text.replace(/^\uFEFF/, ''), source), source);
  const current = config['current-context'] ?? '';
  if (typeof current !== 'string') throw wrongType(source, 'its top level', 'current-context');
  const [clusters, contexts, users] = LISTS.map((list) => entriesIn(config, list, source)) as Lists;
  const ignored = Object.keys(config).filter((key) => !TOP_FIELDS.has(key));
  return { currentContext: current, clusters, contexts, users, ignored: ignored.map(fieldName) };
}

function refuseLong(text: string, source: KubeconfigSource): void {
  const longest = source.folder === undefined ? LONGEST_STORED_TEXT : LONGEST_FILE;
  if (text.length > longest) throw badKubeconfig(source, `is longer than ${longest} characters`, KEEP_ONE);
  if (source.folder === undefined && (text.match(MARKS)?.length ?? 0) > MOST_STORED_MARKS) {
    throw badKubeconfig(source, `has more than ${MOST_STORED_MARKS} line breaks and punctuation marks`, KEEP_ONE);
  }
}

/** Returns the mapping of a kubeconfig. An error names what was found instead. */
function configIn(value: unknown, source: KubeconfigSource): JsonRecord {
  if (typeof value === 'string' && /^[\w+/=\s-]{40,}$/.test(value)) {
    throw badKubeconfig(source, 'is base64 and not a kubeconfig', `Decode it: ${DECODE}`);
  }
  if (!isRecord(value)) throw badKubeconfig(source, 'is not a kubeconfig', 'Name a file of kind Config');
  const { kind, apiVersion } = value;
  if (kind === 'Secret') {
    const remedy = `Take the kubeconfig out of the value in its data, and decode it: ${DECODE}`;
    throw badKubeconfig(source, 'is a Secret of Kubernetes and not a kubeconfig', remedy);
  }
  const isConfig = isAbsent(kind) || kind === 'Config';
  if (isConfig && (isAbsent(apiVersion) || apiVersion === 'v1')) return value;
  throw badKubeconfig(source, 'is not of kind Config and apiVersion v1', 'Name a file of kind Config');
}

type Lists = [readonly unknown[], readonly unknown[], readonly unknown[]];
const LISTS = ['clusters', 'contexts', 'users'] as const;
type List = (typeof LISTS)[number];
const TOP_FIELDS: ReadonlySet<string> = new Set([
  'apiVersion',
  'kind',
  'preferences',
  'extensions',
  'current-context',
  ...LISTS,
]);

function entriesIn(config: JsonRecord, list: List, source: KubeconfigSource): readonly unknown[] {
  const entries = config[list] ?? [];
  if (Array.isArray(entries)) return entries;
  throw badKubeconfig(source, `is not a kubeconfig: ${list} is not a list`, 'Name a file of kind Config');
}

/** `!!binary` is one more base64 around a text. */
const binaryText = defineScalarTag('tag:yaml.org,2002:binary', {
  resolve: (text) => {
    const encoded = text.replace(/\s/g, '');
    return /^[A-Za-z0-9+/]*={0,2}$/.test(encoded) ? Buffer.from(encoded, 'base64').toString() : NOT_RESOLVED;
  },
  identify: () => false,
});
/** The words of kubectl's parser, such as `yes` and `on`. */
const SCHEMA = CORE_SCHEMA.withTags(boolYaml11Tag, binaryText);

/** What the parser refuses, by a word of its message. Its message itself may quote the text, which may have a private key. */
const REFUSED_SYNTAX: readonly (readonly [reason: RegExp, problem: string, remedy: string])[] = [
  [/duplicated mapping key/, 'has a key twice', 'Remove one of them'],
  [/alias/, 'has a YAML alias', 'Write its value instead'],
  [
    /unknown (scalar|sequence|mapping) tag|cannot resolve/,
    'has a YAML tag that a kubeconfig does not need',
    'Remove the tag',
  ],
];

function yamlValue(text: string, source: KubeconfigSource): unknown {
  let documents: unknown[];
  try {
    documents = loadAll(text, { maxAliases: 0, schema: SCHEMA });
  } catch (error) {
    const { reason = '', mark } = error instanceof YAMLException ? error : {};
    const [, problem = 'is not YAML', remedy = 'Write it again, for example with kubectl config view --raw'] =
      REFUSED_SYNTAX.find(([known]) => known.test(reason)) ?? [];
    throw badKubeconfig(source, `${problem} (${mark ? `line ${mark.line + 1}` : 'its parser failed'})`, remedy);
  }
  const [first, second] = documents.filter((document) => document !== null && document !== undefined);
  if (second !== undefined) throw badKubeconfig(source, 'has a second YAML document', 'Remove it');
  return first;
}

/** Returns the name of a key for a message, or "a key" if the name may be a misplaced secret. */
function fieldName(key: string): string {
  return /^[A-Za-z-]{1,40}$/.test(key) ? key : 'a key';
}

function wrongType(source: KubeconfigSource, place: string, field: string): ClusterError {
  return badKubeconfig(
    source,
    `${field} of ${place} has the wrong type`,
    'Correct it, or run kubectl config view --raw',
  );
}

/** Returns whether a field has no value, as client-go understands it. */
function isAbsent(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0;
  return value === undefined || value === null || value === '' || value === false;
}

const text = z.optional(z.string());
const anything = z.optional(z.unknown());

/** The fields of each kind of entry, as in `k8s.io/client-go/tools/clientcmd/api/v1`. */
const ENTRIES = {
  cluster: z.object({
    server: text,
    'tls-server-name': text,
    'insecure-skip-tls-verify': z.optional(z.boolean()),
    'certificate-authority': text,
    'certificate-authority-data': text,
    'proxy-url': text,
    'disable-compression': z.optional(z.boolean()),
    extensions: z.optional(z.array(z.object({ name: z.string(), extension: anything }))),
  }),
  user: z.object({
    'client-certificate': text,
    'client-certificate-data': text,
    'client-key': text,
    'client-key-data': text,
    token: text,
    tokenFile: text,
    username: text,
    password: text,
    as: text,
    'as-uid': text,
    'as-groups': anything,
    'as-user-extra': anything,
    exec: z.optional(z.record(z.string(), z.unknown())),
    'auth-provider': z.optional(z.record(z.string(), z.unknown())),
    extensions: anything,
  }),
  context: z.object({ cluster: text, user: text, namespace: text, extensions: anything }),
};

type Entries = { readonly [Kind in keyof typeof ENTRIES]: z.infer<(typeof ENTRIES)[Kind]> };
export type KubeconfigCluster = Entries['cluster'];
export type KubeconfigUser = Entries['user'];

export interface FoundEntry<Entry> {
  readonly entry: Entry;
  /** The unknown fields of the entry, such as `cluster.api-version`. */
  readonly ignored: readonly string[];
}

/**
 * Returns the entry of a name, with its empty fields left out; `undefined` if there is none. Throws `BadKubeconfig` if there are
 * two of the name, or a field has the wrong type.
 */
export function entryOf<Kind extends keyof Entries>(
  list: readonly unknown[],
  kind: Kind,
  name: string,
  source: KubeconfigSource,
): FoundEntry<Entries[Kind]> | undefined {
  const named = list.filter((entry) => isRecord(entry) && entry['name'] === name) as readonly JsonRecord[];
  const place = `${kind} "${boundedText(name, 60)}"`;
  if (named.length > 1) throw badKubeconfig(source, `has two entries for ${place}`, 'Remove one of them');
  if (named[0] === undefined) return undefined;
  const fields = named[0][kind] ?? {};
  if (!isRecord(fields)) throw badKubeconfig(source, `${place} is not a mapping`, 'Correct it');
  if (Object.hasOwn(fields, '<<')) {
    throw badKubeconfig(source, `${place} has a YAML merge key (<<)`, 'Write the merged fields instead');
  }
  const present = Object.fromEntries(Object.entries(fields).filter(([, value]) => !isAbsent(value)));
  const parsed = ENTRIES[kind].safeParse(present);
  if (!parsed.success) throw wrongType(source, place, fieldName(String(parsed.error.issues[0]?.path[0])));
  const known = Object.keys(ENTRIES[kind].shape);
  const ignored = Object.keys(fields).filter((key) => !known.includes(key));
  return { entry: parsed.data as Entries[Kind], ignored: ignored.map((key) => `${kind}.${fieldName(key)}`) };
}
