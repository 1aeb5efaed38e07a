import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { LookupFunction } from 'node:net';
import { dirname, resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { isNativeError } from 'node:util/types';
import { LONGEST_TOKEN } from '../util/bounds.ts';
import { isLocalHost, plainUrl } from '../util/hosts.ts';
import { attempt, boundedText } from '../util/values.ts';
import { localRefused, remoteLookup } from './dns.ts';
import type { Fields, Found } from './kubeconfig-fields.ts';
import { badKubeconfig, entryOf, type KubeconfigSource, readFile, readKubeconfig } from './kubeconfig-text.ts';

export interface TlsMaterial {
  readonly ca?: string | Buffer | undefined;
  readonly cert?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
  readonly servername?: string | undefined;
  /** False if the kubeconfig disables verification of the server's certificate. */
  readonly rejectUnauthorized: boolean;
  /** The groups of the key exchange. Default: the groups of Node.js. */
  readonly ecdhCurve?: string;
}

/** The address and credential of an API server. Only method calls return secrets, so `JSON.stringify` and logs omit them. */
export interface ApiServerAccess {
  /** The scheme, host and port, such as `https://10.0.0.1:6443`. */
  readonly server: string;
  /** The path in the server URL of the kubeconfig. It precedes the path of every request, and is usually empty. */
  readonly basePath: string;
  /** The name of the kubeconfig in messages, such as `kubeconfig in secret kbc/prod-eu-1`. */
  readonly source: string;
  readonly context: string;
  /** The unknown fields of the entries in use, such as `cluster.api-version`. They are ignored. */
  readonly ignored: readonly string[];
  /** Resolves host names in a Lambda function, and refuses local addresses. */
  readonly lookup?: LookupFunction;
  readonly tls: () => TlsMaterial;
  /**
   * True if the credential is a renewed token of AWS STS. The token is sent only to the origin of `server`. The writer of the
   * spec, who chooses the CA and the addresses of the probes, must not get the token.
   */
  readonly isIssuedForServer?: true;
  /** Returns the headers with the credential. Throws `BadKubeconfig` if a token file or plugin has no credential. */
  readonly authHeaders: () => Promise<Readonly<Record<string, string>>>;
}

export type PluginCredential = Pick<TlsMaterial, 'cert' | 'key'> & { readonly token?: string };

export interface PluginCall {
  readonly cluster: Fields<'cluster'>;
  readonly user: Fields<'user'>;
  /** The CA certificates of the cluster, including certificates from a file. */
  readonly ca: string | undefined;
  /** The folder of the kubeconfig, for a plugin with a relative path. */
  readonly folder: string;
}

/** Returns a function that runs the `exec` or auth-provider plugin of one user, and throws the plugin's error. */
export type RunPlugin = (call: PluginCall) => () => Promise<PluginCredential>;

export interface KubeconfigOptions {
  readonly context?: string | undefined;
  /** Runs plugins. Only commands that a user runs set this field: Lambda functions do not contain the code that runs a plugin. */
  readonly runPlugin?: RunPlugin;
  /** Refuses loopback, link-local and metadata addresses, also as the result of a DNS look-up. */
  readonly refuseLocal?: boolean;
}

/** Reads a kubeconfig from a file. Throws a `ClusterError` with code `BadKubeconfig`. */
export async function loadKubeconfigFile(file: string, options: KubeconfigOptions = {}): Promise<ApiServerAccess> {
  const reader = options.runPlugin === undefined ? 'registered' : 'own';
  const source = { name: `kubeconfig ${file}`, reader, folder: dirname(resolve(file)) } as const;
  const bytes = await readFile(resolve(file), source);
  // Windows PowerShell writes UTF-16 with a byte-order mark.
  const text = new TextDecoder(ENCODINGS[bytes.toString('hex', 0, 2)]).decode(bytes);
  return accessFrom(text, source, options);
}

const ENCODINGS: Readonly<Record<string, string>> = { feff: 'utf-16be', fffe: 'utf-16le' };

/** Reads a kubeconfig from a text with embedded certificates and keys. Messages contain `name`. Throws `BadKubeconfig`. */
export async function parseKubeconfig(text: string, name: string, options: KubeconfigOptions = {}) {
  return accessFrom(text, { name: `kubeconfig ${name}`, reader: 'stored', folder: '' }, options);
}

async function accessFrom(text: string, source: KubeconfigSource, options: KubeconfigOptions) {
  const { runPlugin, refuseLocal = false } = options;
  const { context, cluster, user, ignored } = entriesInUse(text, source, options.context);
  const url = serverUrl(cluster, user, source);
  if (refuseLocal && isLocalHost(url)) throw localRefused(`${source.name}: ${url.host}`);
  const ca = authoritiesIn(await pem(cluster.fields, 'certificate-authority', source), source);
  const call = { cluster: cluster.fields, user: user.fields, ca, folder: source.folder };
  const plugin = credentialOf(user) === 'plugin' ? runPlugin?.(call) : undefined;
  const ask = async () => {
    const given = await plugin?.().catch((error: unknown) => {
      const problem = `the plugin of its user failed: ${boundedText(isNativeError(error) ? error.message : 'unknown error')}`;
      throw badKubeconfig(source, problem, 'Run the plugin by hand to see why');
    });
    return { headers: await headersOf(user, source, given), ...given };
  };
  const first = await ask();
  const tls = {
    ca,
    ...(await clientCertificate(user, source, first)),
    servername: cluster.fields['tls-server-name'],
    rejectUnauthorized: !cluster.fields['insecure-skip-tls-verify'],
  };
  return {
    server: url.origin,
    basePath: url.pathname.replace(/\/{2,}/g, '/').replace(/\/$/, ''),
    source: source.name,
    context,
    ignored,
    ...(refuseLocal && { lookup: remoteLookup }),
    tls: () => tls,
    authHeaders: plugin || user.fields.tokenFile ? async () => (await ask()).headers : async () => first.headers,
  };
}

/** Finds only the entries that the context uses. Other entries may be incomplete, or may belong to other tools. */
function entriesInUse(text: string, source: KubeconfigSource, wanted: string | undefined) {
  const config = readKubeconfig(text, source);
  const { contexts, clusters, users, 'current-context': current = '' } = config.fields;
  const context = entryOf(source, 'context', wanted ?? current, contexts);
  const cluster = entryOf(source, 'cluster', context.fields.cluster, clusters);
  // Like client-go: a context without a user sends no credential.
  const user = context.fields.user ? entryOf(source, 'user', context.fields.user, users) : NO_USER;
  const ignored = [config, context, cluster, user].flatMap((one) => one.ignored);
  return { context: wanted ?? current, cluster, user, ignored };
}

const NO_USER: Found<'user'> = { place: 'no user', fields: {}, ignored: [] };

/** Returns how a user authenticates. As in client-go, a token or certificate of the user takes precedence over a plugin. */
function credentialOf({ fields }: Found<'user'>): 'own' | 'plugin' | 'none' {
  const certificate = fields['client-certificate-data'] ?? fields['client-certificate'];
  if (fields.token ?? fields.tokenFile ?? certificate) return 'own';
  return (fields.exec ?? fields['auth-provider']) ? 'plugin' : 'none';
}

function serverUrl({ place, fields }: Found<'cluster'>, user: Found<'user'>, source: KubeconfigSource): URL {
  const url = plainUrl(fields.server ?? '');
  if (url === undefined || url.search !== '') {
    const what = fields.server === undefined ? 'is missing' : 'is not the URL of an API server';
    throw badKubeconfig(source, `the server of ${place} ${what}`, 'Write it like https://10.0.0.1:6443');
  }
  if (url.protocol === 'http:' && credentialOf(user) !== 'none') {
    const problem = `${place} is reached over http://, which would send the credential unencrypted`;
    throw badKubeconfig(source, problem, 'Use https://, or a user without a credential');
  }
  if (fields['insecure-skip-tls-verify'] && (fields['certificate-authority-data'] ?? fields['certificate-authority'])) {
    const problem = `${place} has a CA and insecure-skip-tls-verify`;
    throw badKubeconfig(source, problem, 'Remove insecure-skip-tls-verify');
  }
  return url;
}

/** Returns the headers with the credential. Like client-go, prefers a token file, then a token, then a plugin. */
async function headersOf({ place, fields }: Found<'user'>, source: KubeconfigSource, given?: PluginCredential) {
  const inFile = fields.tokenFile && (await readFile(fields.tokenFile, source)).toString();
  const token = (inFile ?? fields.token ?? given?.token)?.trim();
  if (token === undefined) return {};
  // With an empty token, requests would be anonymous. Characters outside printable ASCII end the header or make requests fail.
  if (!/^[!-~]+$/.test(token)) {
    const problem = `the token of ${place} is empty, or has a space, line break or other character that an HTTP header must not contain`;
    throw badKubeconfig(source, problem, 'Write it on one line, as it was issued');
  }
  if (token.length > LONGEST_TOKEN) {
    const problem = `the token of ${place} has more than ${LONGEST_TOKEN} characters`;
    throw badKubeconfig(source, problem, 'Issue one with fewer claims or groups');
  }
  return { Authorization: `Bearer ${token}` };
}

type PemFields<Name extends string> = { readonly [Field in Name | `${Name}-data`]?: string };

/** Returns the embedded data, or else the file's content. */
async function pem<Name extends string>(fields: PemFields<Name>, name: Name, source: KubeconfigSource) {
  const data = fields[`${name}-data`];
  const file = fields[name];
  if (data === undefined) return file === undefined ? undefined : readFile(file, source);
  const text = data.replace(/[\r\n]/g, '');
  if (/^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.length % 4 === 0) return Buffer.from(text, 'base64');
  const remedy = 'Write the PEM text as base64, or take that of kubectl config view --raw';
  throw badKubeconfig(source, `${name}-data is not base64`, remedy);
}

const BEGIN = '-----BEGIN CERTIFICATE-----';

/** Returns the certificates in a PEM text. Like client-go, ignores invalid certificates if at least one is valid. */
function authoritiesIn(pem: Buffer | undefined, source: KubeconfigSource): string | undefined {
  if (pem === undefined) return undefined;
  const texts = pem.toString('latin1').split(/^(?=-----BEGIN CERTIFICATE-----)/m);
  const certificates = texts
    .filter((one) => one.startsWith(BEGIN))
    .flatMap((one) => attempt(() => new X509Certificate(one).toString()) ?? []);
  if (certificates.length > 0) return certificates.join('');
  const problem = 'its CA does not parse: it has no PEM certificate';
  throw badKubeconfig(source, problem, 'Embed PEM files as base64 (for DER: openssl x509 -inform der)');
}

/** The largest RSA key. Kubernetes uses 2048 bits. A handshake with a key of 16,384 bits takes seconds. */
const MOST_KEY_BITS = 4096;

/**
 * Returns a client certificate and its key in OpenSSL's form. Refuses an encrypted key: TLS would try to decrypt it with
 * an empty password, and the parameters in the key could make this decryption slow in the process that all clusters share.
 */
async function clientCertificate({ place, fields }: Found<'user'>, source: KubeconfigSource, given: PluginCredential) {
  const cert = given.cert ?? (await pem(fields, 'client-certificate', source));
  // Like client-go: a key without a certificate is not used.
  if (cert === undefined) return {};
  const keyPem = given.key ?? (await pem(fields, 'client-key', source));
  const refused = (problem: string) => {
    const remedy = `Embed a PEM key without a password, of at most ${MOST_KEY_BITS} bits, and its certificate, as base64`;
    return badKubeconfig(source, `${place} has a client certificate ${problem}`, remedy);
  };
  if (keyPem === undefined) throw refused('without its key, so that requests would be anonymous');
  const parsed = attempt(() => createPrivateKey(keyPem));
  if (parsed === undefined) throw refused('with a key that does not parse without a password');
  const { modulusLength = 0 } = parsed.asymmetricKeyDetails ?? {};
  if (modulusLength > MOST_KEY_BITS) throw refused(`with a key of ${modulusLength} bits`);
  const key = parsed.export({ type: 'pkcs8', format: 'pem' }).toString();
  if (attempt(() => createSecureContext({ cert, key }))) return { cert, key };
  throw refused('that does not parse, or does not belong to its key');
}
