import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { LookupFunction } from 'node:net';
import { dirname, resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { isNativeError } from 'node:util/types';
import { LONGEST_TOKEN } from '../util/bounds.ts';
import { isLocalHost } from '../util/hosts.ts';
import { boundedText } from '../util/values.ts';
import { localRefused, remoteLookup } from './dns.ts';
import {
  badKubeconfig,
  type Kubeconfig,
  type KubeconfigCluster,
  type KubeconfigSource,
  type KubeconfigUser,
  LONGEST_FILE,
  readKubeconfig,
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

/** Returns a function that runs the `exec` or auth-provider plugin of one user, and that throws the plugin's error. */
export type RunPlugin = (server: string, user: KubeconfigUser) => () => Promise<PluginCredential>;

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
  return accessFrom(text.toString(), source, options);
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
  const config = readKubeconfig(text, source, runPlugin !== undefined);
  const chosen = chosenContext(config, source, wanted);
  refuseUnsupported(chosen);
  const url = serverUrl(chosen);
  if (refuseLocal && isLocalHost(url)) throw localRefused(`${source.name}: ${url.host}`);
  const { user } = chosen;
  const plugin = hasPlugin(user) ? runPlugin?.(url.origin, user) : undefined;
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
    basePath: url.pathname.replace(/\/$/, ''),
    source: source.name,
    context: chosen.context,
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
}

function chosenContext(config: Kubeconfig, source: KubeconfigSource, wanted: string | undefined): Chosen {
  const { contexts, clusters, users, 'current-context': current } = config;
  const choices = `It has: ${boundedText(contexts.map(({ name }) => name).join(', ')) || 'none'}`;
  const name = wanted ?? current;
  if (!name) {
    throw badKubeconfig(source, 'has no current-context', `Name a context. ${choices}`);
  }
  const context = contexts.find((candidate) => candidate.name === name)?.context;
  if (context === undefined) {
    throw badKubeconfig(source, `has no context "${boundedText(name, 60)}"`, `Name one of its contexts. ${choices}`);
  }
  const cluster = clusters.find((candidate) => candidate.name === context.cluster)?.cluster;
  const user = users?.find((candidate) => candidate.name === context.user);
  if (cluster === undefined || user === undefined) {
    const missing = cluster === undefined ? `cluster "${context.cluster}"` : `user "${context.user ?? ''}"`;
    const problem = `context "${boundedText(name, 60)}" names ${boundedText(missing, 80)}, which does not exist`;
    throw badKubeconfig(source, problem, `Add it, or name another context. ${choices}`);
  }
  const names = { context: name, clusterName: boundedText(context.cluster, 60), userName: boundedText(user.name, 60) };
  return { ...names, source, cluster, user: user.user ?? {} };
}

function hasPlugin(user: KubeconfigUser): boolean {
  return Boolean(user.exec ?? user['auth-provider']);
}

function refuseUnsupported({ source, clusterName, cluster, userName, user }: Chosen): void {
  const refuse = (problem: string, remedy: string): never => {
    throw badKubeconfig(source, problem, remedy);
  };
  if (user.username || user.password) {
    const problem = `user "${userName}" has a user name and a password, which API servers no longer accept`;
    refuse(problem, 'Use a token or a client certificate');
  }
  const as = (['as', 'as-groups', 'as-uid', 'as-user-extra'] as const).find((field) => user[field]);
  if (as !== undefined) {
    refuse(`user "${userName}" has ${as}, which is not supported`, 'Give the user itself the rights that it needs');
  }
  if (cluster['proxy-url']) {
    const remedy = 'Use a server that is reached directly';
    refuse(`cluster "${clusterName}" has a proxy-url, which is not supported`, remedy);
  }
  const hasCa = Boolean(cluster['certificate-authority-data'] || cluster['certificate-authority']);
  if (cluster['insecure-skip-tls-verify'] && hasCa) {
    refuse(`cluster "${clusterName}" has a CA and insecure-skip-tls-verify`, 'Remove insecure-skip-tls-verify');
  }
  if (source.folder !== undefined) return;
  if (user.tokenFile) {
    refuse('names a token file, but a stored kubeconfig has no files', 'Embed the token');
  }
  if (cluster['certificate-authority'] || user['client-certificate'] || user['client-key']) {
    const remedy = 'Embed them: kubectl config view --raw --flatten';
    refuse('names certificate files, but a stored kubeconfig has no files', remedy);
  }
}

function serverUrl({ source, clusterName, cluster, user }: Chosen): URL {
  const url = URL.parse(cluster.server);
  if (url === null || !['https:', 'http:'].includes(url.protocol) || url.username + url.password + url.search !== '') {
    const problem = `the server of cluster "${clusterName}" is not the URL of an API server`;
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
async function pem(data: string | null | undefined, file: string | null | undefined, source: KubeconfigSource) {
  if (data) return Buffer.from(data, 'base64');
  return file ? fileBeside(file, source) : undefined;
}

async function fileBeside(file: string, source: KubeconfigSource): Promise<Buffer> {
  const whole = resolve(source.folder ?? '.', file);
  return readWhole(whole).catch((error: unknown) => {
    throw badKubeconfig(source, `the file ${whole} cannot be read (${codeOf(error)})`, 'Correct what it names');
  });
}

async function tlsMaterial({ source, cluster, user }: Chosen, given: PluginCredential): Promise<TlsMaterial> {
  const ca = await pem(cluster['certificate-authority-data'], cluster['certificate-authority'], source);
  const cert = given.cert ?? (await pem(user['client-certificate-data'], user['client-certificate'], source));
  const keyPem = given.key ?? (await pem(user['client-key-data'], user['client-key'], source));
  const key = keyPem && plainKey(keyPem, source);
  try {
    if (ca !== undefined) new X509Certificate(ca);
    createSecureContext({ cert, key });
  } catch (error) {
    const problem = `its CA, client certificate or key does not parse (${codeOf(error)})`;
    throw badKubeconfig(source, problem, 'Embed PEM files as base64');
  }
  return {
    ca,
    cert,
    key,
    servername: cluster['tls-server-name'] || undefined,
    rejectUnauthorized: !cluster['insecure-skip-tls-verify'],
  };
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
