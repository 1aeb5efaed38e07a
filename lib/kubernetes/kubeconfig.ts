import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { LookupFunction } from 'node:net';
import { dirname, resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { isNativeError } from 'node:util/types';
import { LONGEST_TOKEN } from '../util/bounds.ts';
import { isLocalHost, plainUrl } from '../util/hosts.ts';
import { boundedText } from '../util/values.ts';
import { localRefused, remoteLookup } from './dns.ts';
import {
  badKubeconfig,
  entryOf,
  type KubeconfigCluster,
  type KubeconfigSource,
  type KubeconfigUser,
  LONGEST_FILE,
  readKubeconfig,
  textOfFile,
} from './kubeconfig-text.ts';

/** TLS material in the form of `node:tls`. */
export interface TlsMaterial {
  readonly ca?: string | Buffer | undefined;
  readonly cert?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
  readonly servername?: string | undefined;
  /** False if the kubeconfig disables verification of the server's certificate. */
  readonly rejectUnauthorized: boolean;
  /** The groups of the key exchange. Default: those of Node.js. */
  readonly ecdhCurve?: string;
}

/**
 * The address and credential of one API server. Key and credential are behind functions, so that neither a log
 * line nor `JSON.stringify` can show them.
 */
export interface ApiServerAccess {
  /** The scheme, host and port, such as `https://10.0.0.1:6443`. */
  readonly server: string;
  /** The path of the kubeconfig's server URL, which precedes the path of every request. Usually empty. */
  readonly basePath: string;
  /** The kubeconfig, such as `kubeconfig in secret kbc/prod-eu-1`. */
  readonly source: string;
  /** The name of the context in use. */
  readonly context: string;
  /** The unknown fields beside those in use, which are ignored, such as `cluster.api-version`. */
  readonly ignored: readonly string[];
  /** Resolves host names in a Lambda function, and refuses local addresses. */
  readonly lookup?: LookupFunction;
  readonly tls: () => TlsMaterial;
  /**
   * True if the credential is a token of AWS STS for `server`, which is renewed automatically. The token is sent only to the
   * origin of `server`. The writer of the spec chooses the CA and the addresses of the probes, and must not get the token.
   */
  readonly isIssuedForServer?: true;
  /** Returns the headers with the credential. Throws `BadKubeconfig` if a token file or plugin provides none. */
  readonly authHeaders: () => Promise<Readonly<Record<string, string>>>;
}

export interface PluginCredential {
  readonly token?: string;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
}

export interface PluginCall {
  readonly cluster: KubeconfigCluster;
  readonly user: KubeconfigUser;
  /** The folder of the kubeconfig, for a plugin with a relative path. */
  readonly folder: string;
}

/** Returns a function that runs the `exec` or auth-provider plugin of one user, and that throws the plugin's error. */
export type RunPlugin = (call: PluginCall) => () => Promise<PluginCredential>;

export interface KubeconfigOptions {
  /** The name of the context to use. Default: the kubeconfig's current-context. */
  readonly context?: string | undefined;
  /** Runs plugins. Only commands that a user runs set this field: functions do not contain the code that runs a plugin. */
  readonly runPlugin?: RunPlugin;
  /** Refuses loopback, link-local and metadata addresses, also as the result of a DNS look-up. */
  readonly refuseLocal?: boolean;
}

/** Reads a kubeconfig from a file. Throws a `ClusterError` with code `BadKubeconfig`. */
export async function loadKubeconfigFile(file: string, options: KubeconfigOptions = {}): Promise<ApiServerAccess> {
  const source = { name: `kubeconfig ${file}`, folder: dirname(resolve(file)) };
  const text = await readWhole(file).catch((error: unknown) => {
    const problem = `cannot be read (${codeOf(error)})`;
    throw badKubeconfig(source, problem, 'Name a file that exists and that this user may read');
  });
  return accessFrom(textOfFile(text), source, options);
}

/**
 * Reads a kubeconfig from a text with embedded certificates and keys. Messages contain its name. Throws a `ClusterError` with
 * code `BadKubeconfig`.
 */
export async function parseKubeconfig(text: string, name: string, options: KubeconfigOptions = {}) {
  return accessFrom(text, { name: `kubeconfig ${name}` }, options);
}

/** Reads a file, but at most one byte more than the limit, because a file may be endless. */
async function readWhole(file: string): Promise<Buffer> {
  return Buffer.concat(await createReadStream(file, { end: LONGEST_FILE }).toArray());
}

function codeOf(error: unknown): string {
  return isNativeError(error) && 'code' in error ? String(error.code) : 'unknown error';
}

async function accessFrom(
  text: string,
  source: KubeconfigSource,
  { context: wanted, runPlugin, refuseLocal = false }: KubeconfigOptions,
): Promise<ApiServerAccess> {
  const chosen = chosenContext(text, source, wanted);
  refuseUnsupported(chosen, readerOf(source, runPlugin));
  const url = serverUrl(chosen);
  if (refuseLocal && isLocalHost(url)) throw localRefused(`${source.name}: ${url.host}`);
  const { cluster, user } = chosen;
  const plugin = hasPlugin(user) ? runPlugin?.({ cluster, user, folder: source.folder ?? '.' }) : undefined;
  const ask = async () => {
    const given = await plugin?.().catch((error: unknown) => {
      const problem = `the plugin of its user failed: ${boundedText(isNativeError(error) ? error.message : 'unknown error')}`;
      throw badKubeconfig(source, problem, 'Run the plugin by hand to see why');
    });
    return { headers: await headersOf(chosen, given), ...given };
  };
  const first = await ask();
  const tls = await tlsMaterial(chosen, first);
  return {
    server: url.origin,
    basePath: url.pathname.replace(/\/{2,}/g, '/').replace(/\/$/, ''),
    source: source.name,
    context: chosen.context,
    ignored: chosen.ignored,
    ...(refuseLocal && { lookup: remoteLookup }),
    tls: () => tls,
    authHeaders: plugin || user.tokenFile ? async () => (await ask()).headers : async () => first.headers,
  };
}

interface Chosen {
  readonly source: KubeconfigSource;
  readonly context: string;
  readonly clusterName: string;
  readonly cluster: KubeconfigCluster;
  readonly userName: string;
  readonly user: KubeconfigUser;
  readonly ignored: readonly string[];
}

/** Reads only the entries that the context uses: the others may be unfinished, or of other tools. */
function chosenContext(text: string, source: KubeconfigSource, wanted: string | undefined): Chosen {
  const { contexts, clusters, users, currentContext, ignored } = readKubeconfig(text, source);
  const names = contexts.map((entry) => Object(entry)['name']).filter((name) => typeof name === 'string');
  const choices = `It has: ${boundedText(names.join(', ')) || 'none'}`;
  const name = wanted ?? currentContext;
  if (name === '') throw badKubeconfig(source, 'has no current-context', `Name a context. ${choices}`);
  const context = entryOf(contexts, 'context', name, source);
  if (context === undefined) {
    throw badKubeconfig(source, `has no context "${boundedText(name, 60)}"`, `Name one of its contexts. ${choices}`);
  }
  const { cluster: clusterName = '', user: userName } = context.entry;
  const cluster = entryOf(clusters, 'cluster', clusterName, source);
  // Like client-go: a context without a user sends no credential.
  const user = userName === undefined ? { entry: {}, ignored: [] } : entryOf(users, 'user', userName, source);
  if (cluster === undefined || user === undefined) {
    const missing = cluster === undefined ? `cluster "${clusterName}"` : `user "${userName}"`;
    const problem = `context "${boundedText(name, 60)}" names ${boundedText(missing, 80)}, which does not exist`;
    throw badKubeconfig(source, problem, `Add it, or name another context. ${choices}`);
  }
  return {
    context: name,
    clusterName: boundedText(clusterName, 60),
    userName: boundedText(userName ?? '', 60),
    source,
    cluster: cluster.entry,
    user: user.entry,
    ignored: [...ignored, ...context.ignored, ...cluster.ignored, ...user.ignored],
  };
}

function hasPlugin(user: KubeconfigUser): boolean {
  return Boolean(user.exec ?? user['auth-provider']);
}

/** The readers of a kubeconfig: a stored text, the file of a registered cluster, and a user's own file (`--kubeconfig`). */
type Reader = 'stored' | 'registered' | 'own';
const ALL: readonly Reader[] = ['stored', 'registered', 'own'];

function readerOf({ folder }: KubeconfigSource, runPlugin: RunPlugin | undefined): Reader {
  if (folder === undefined) return 'stored';
  return runPlugin === undefined ? 'registered' : 'own';
}

interface RefusedFields {
  readonly of: 'cluster' | 'user';
  readonly fields: readonly (keyof KubeconfigCluster | keyof KubeconfigUser)[];
  readonly by: readonly Reader[];
  readonly problem: string;
  readonly remedy: string;
}

const NO_PLUGIN = { of: 'user', by: ['stored', 'registered'], remedy: 'Use a token or a client certificate' } as const;
const NO_FILE = { by: ['stored'], remedy: 'Embed it: kubectl config view --raw --flatten' } as const;

/** What is refused, by field. docs/kubeconfig-secret.md explains why. */
const REFUSED: readonly RefusedFields[] = [
  {
    of: 'user',
    fields: ['username', 'password'],
    by: ALL,
    problem: 'API servers no longer accept a user name and a password',
    remedy: 'Use a token or a client certificate',
  },
  {
    of: 'user',
    fields: ['as', 'as-groups', 'as-uid', 'as-user-extra'],
    by: ALL,
    problem: 'impersonation is not supported',
    remedy: 'Give the user itself the rights that it needs',
  },
  {
    of: 'cluster',
    fields: ['proxy-url'],
    by: ALL,
    problem: 'a proxy is not supported',
    remedy: 'Use a server that is reached directly',
  },
  { ...NO_PLUGIN, fields: ['exec'], problem: 'an exec plugin runs only with --kubeconfig of kbctl' },
  { ...NO_PLUGIN, fields: ['auth-provider'], problem: 'an auth-provider plugin runs only with --kubeconfig of kbctl' },
  {
    ...NO_FILE,
    of: 'user',
    fields: ['tokenFile', 'client-certificate', 'client-key'],
    problem: 'a stored kubeconfig has no files',
  },
  { ...NO_FILE, of: 'cluster', fields: ['certificate-authority'], problem: 'a stored kubeconfig has no files' },
];

function refuseUnsupported(chosen: Chosen, reader: Reader): void {
  const { source, clusterName, cluster, userName } = chosen;
  for (const { of, fields, by, problem, remedy } of REFUSED) {
    const field = fields.find((name) => Object(chosen[of])[name] !== undefined);
    if (field === undefined || !by.includes(reader)) continue;
    const place = of === 'cluster' ? clusterName : userName;
    throw badKubeconfig(source, `${of} "${place}" has ${field}, and ${problem}`, remedy);
  }
  const hasCa = Boolean(cluster['certificate-authority-data'] ?? cluster['certificate-authority']);
  if (cluster['insecure-skip-tls-verify'] && hasCa) {
    const problem = `cluster "${clusterName}" has a CA and insecure-skip-tls-verify`;
    throw badKubeconfig(source, problem, 'Remove insecure-skip-tls-verify');
  }
}

function serverUrl({ source, clusterName, cluster, user }: Chosen): URL {
  const url = plainUrl(cluster.server ?? '');
  if (url === undefined || url.search !== '') {
    const what = cluster.server === undefined ? 'is missing' : 'is not the URL of an API server';
    const problem = `the server of cluster "${clusterName}" ${what}`;
    throw badKubeconfig(source, problem, 'Write it like https://10.0.0.1:6443');
  }
  const { token, tokenFile, 'client-certificate': file, 'client-certificate-data': data } = user;
  if (url.protocol === 'http:' && (token || tokenFile || file || data || hasPlugin(user))) {
    const problem = `cluster "${clusterName}" is reached over http://, which would send the credential unencrypted`;
    throw badKubeconfig(source, problem, 'Use https://, or a user without a credential');
  }
  return url;
}

/** Returns the headers with the credential. Like client-go, prefers a token file, then a token, then a plugin. */
async function headersOf(
  { source, userName, user }: Chosen,
  given?: PluginCredential,
): Promise<Record<string, string>> {
  const inFile = user.tokenFile ? (await fileBeside(user.tokenFile, source)).toString() : undefined;
  const token = (inFile ?? (user.token || given?.token || '')).trim();
  // A token must be printable ASCII: any other character would end the header or make each request fail.
  if (!/^[!-~]*$/.test(token)) {
    const problem = `the token of user "${userName}" has a space, line break or other character that an HTTP header must not contain`;
    throw badKubeconfig(source, problem, 'Write it on one line, as it was issued');
  }
  if (token.length > LONGEST_TOKEN) {
    const problem = `the token of user "${userName}" has more than ${LONGEST_TOKEN} characters`;
    throw badKubeconfig(source, problem, 'Issue one with fewer claims or groups');
  }
  return token === '' ? {} : { Authorization: `Bearer ${token}` };
}

/** Returns the embedded data, or else the file's content. */
async function pem(entry: KubeconfigCluster | KubeconfigUser, field: PemField, source: KubeconfigSource) {
  const data: string | undefined = Object(entry)[`${field}-data`];
  const file: string | undefined = Object(entry)[field];
  if (data === undefined) return file === undefined ? undefined : fileBeside(file, source);
  const text = data.replace(/[\r\n]/g, '');
  if (/^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.length % 4 === 0) return Buffer.from(text, 'base64');
  throw badKubeconfig(source, `${field}-data is not base64`, 'Write the PEM text as base64, without spaces');
}

type PemField = 'certificate-authority' | 'client-certificate' | 'client-key';

async function fileBeside(file: string, source: KubeconfigSource): Promise<Buffer> {
  const whole = resolve(source.folder ?? '.', file);
  return readWhole(whole).catch((error: unknown) => {
    throw badKubeconfig(source, `the file ${whole} cannot be read (${codeOf(error)})`, 'Correct what it names');
  });
}

async function tlsMaterial({ source, cluster, user, userName }: Chosen, given: PluginCredential): Promise<TlsMaterial> {
  const ca = await pem(cluster, 'certificate-authority', source);
  const cert = given.cert ?? (await pem(user, 'client-certificate', source));
  // Like client-go: a key without a certificate is not used.
  const keyPem = cert && (given.key ?? (await pem(user, 'client-key', source)));
  if (cert !== undefined && keyPem === undefined) {
    const problem = `user "${userName}" has a client certificate without its key, so that requests would be anonymous`;
    throw badKubeconfig(source, problem, 'Add client-key-data');
  }
  const key = keyPem && plainKey(keyPem, source);
  return {
    ca: ca && certificatesIn(ca, source),
    ...(cert && key && { cert: matching(cert, key, source), key }),
    servername: cluster['tls-server-name'],
    rejectUnauthorized: !cluster['insecure-skip-tls-verify'],
  };
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Returns the certificates in a PEM text. Like client-go, ignores those that do not parse, unless no other is there. */
function certificatesIn(text: Buffer, source: KubeconfigSource): string {
  const certificates = (text.toString('latin1').match(CERTIFICATE) ?? []).filter((one) => {
    try {
      return new X509Certificate(one) !== undefined;
    } catch {
      return false;
    }
  });
  if (certificates.length > 0) return `${certificates.join('\n')}\n`;
  const problem = 'its CA does not parse: it has no PEM certificate';
  throw badKubeconfig(source, problem, 'Embed PEM files as base64 (for DER: openssl x509 -inform der)');
}

function matching(cert: string | Buffer, key: string, source: KubeconfigSource): string | Buffer {
  try {
    createSecureContext({ cert, key });
    return cert;
  } catch (error) {
    const problem = `its client certificate does not parse, or does not belong to its key (${codeOf(error)})`;
    throw badKubeconfig(source, problem, 'Embed the certificate of the key as base64 of PEM');
  }
}

/** The largest RSA key. Kubernetes uses 2048 bits. A handshake with a key of 16,384 bits takes seconds. */
const MOST_KEY_BITS = 4096;

/**
 * Returns a private key in OpenSSL's form. Refuses an encrypted key: its parameters decide how much work it takes to
 * decrypt, and TLS would try an empty password in the process that all clusters share.
 */
function plainKey(pem: string | Buffer, source: KubeconfigSource): string {
  const refused = (problem: string) =>
    badKubeconfig(source, problem, `Embed a PEM key without a password, of at most ${MOST_KEY_BITS} bits, as base64`);
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch (error) {
    throw refused(`its client key does not parse without a password (${codeOf(error)})`);
  }
  const { modulusLength = 0 } = key.asymmetricKeyDetails ?? {};
  if (modulusLength > MOST_KEY_BITS) throw refused(`its client key has ${modulusLength} bits`);
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}
