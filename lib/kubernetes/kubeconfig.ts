import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import { dirname, resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { isNativeError } from 'node:util/types';
import type { Cluster, KubeConfig, User } from '@kubernetes/client-node';
import type { KubeconfigSource } from './kubeconfig-text.ts';
import { badKubeconfig, kubeConfigFromText } from './kubeconfig-text.ts';

/** As `node:tls` takes it. */
export interface TlsMaterial {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized: boolean;
}

/**
 * How to reach one API server, and as whom. Key and credential are behind functions, so that neither a log line nor
 * `JSON.stringify` can show them.
 */
export interface ApiServerAccess {
  /** Scheme, host and port: `https://10.0.0.1:6443`. */
  readonly server: string;
  /** What comes before the path of every request; empty unless the server is behind a path. */
  readonly basePath: string;
  /** The context that was chosen. */
  readonly context: string;
  /** The kubeconfig says not to verify the server's certificate. To be logged by whoever uses it. */
  readonly skipTlsVerify: boolean;
  readonly tls: () => TlsMaterial;
  /** Throws a `ClusterError` with code `BadKubeconfig` when a token file or plugin gives nothing. */
  readonly authHeaders: () => Promise<Readonly<Record<string, string>>>;
}

export interface KubeconfigOptions {
  /** Default: the kubeconfig's current-context. */
  readonly context?: string;
  /** Run the `exec` or auth-provider plugin that the kubeconfig names. Only for a command line that a person started. */
  readonly allowPlugins?: boolean;
}

/** Reads a kubeconfig from a file. Throws a `ClusterError` with code `BadKubeconfig`. */
export async function loadKubeconfigFile(file: string, options: KubeconfigOptions = {}): Promise<ApiServerAccess> {
  const name = `kubeconfig ${file}`;
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    const code = isNativeError(error) && 'code' in error ? String(error.code) : 'unknown error';
    throw badKubeconfig({ name }, `cannot be read (${code})`, 'Name a file that exists and that this user may read');
  });
  return accessFrom(text, { name, folder: dirname(resolve(file)) }, options);
}

/**
 * Reads a kubeconfig that came as text, from a secret store for example. Certificates and keys must be embedded.
 * `name` stands for it in messages. Throws a `ClusterError` with code `BadKubeconfig`.
 */
export async function parseKubeconfig(
  text: string,
  name: string,
  options: KubeconfigOptions = {},
): Promise<ApiServerAccess> {
  return accessFrom(text, { name: `kubeconfig ${name}` }, options);
}

async function accessFrom(
  text: string,
  source: KubeconfigSource,
  options: KubeconfigOptions,
): Promise<ApiServerAccess> {
  const config = kubeConfigFromText(text, source);
  const { context, cluster, user } = chosenContext(config, source, options.context);
  refuseUnsupported(cluster, user, source, options.allowPlugins === true);
  const url = serverUrl(cluster, user, source);
  const credential = async (): Promise<RequestOptions> =>
    url.protocol === 'http:' ? {} : clientNodeOptions(config, source);
  const first = await credential();
  const tls = tlsMaterial(first, source);
  const headers = headersOf(first);
  return {
    server: url.origin,
    basePath: url.pathname.replace(/\/+$/, ''),
    context,
    skipTlsVerify: !tls.rejectUnauthorized,
    tls: () => tls,
    authHeaders: isDynamic(user) ? async () => headersOf(await credential()) : async () => headers,
  };
}

function chosenContext(config: KubeConfig, source: KubeconfigSource, wanted: string | undefined) {
  const contexts = config.getContexts();
  const choices = `It has: ${contexts.map((context) => context.name).join(', ') || 'none'}`;
  const name = wanted ?? config.getCurrentContext();
  if (typeof name !== 'string' || name === '') {
    throw badKubeconfig(source, 'has no current-context', `Name a context. ${choices}`);
  }
  const context = contexts.find((candidate) => candidate.name === name);
  if (context === undefined) {
    throw badKubeconfig(source, `has no context "${name}"`, `Name one that it has. ${choices}`);
  }
  config.setCurrentContext(name);
  const cluster = config.getClusters().find((candidate) => candidate.name === context.cluster);
  const user = config.getUsers().find((candidate) => candidate.name === context.user);
  if (cluster === undefined || user === undefined) {
    const missing = cluster === undefined ? `cluster "${context.cluster}"` : `user "${context.user}"`;
    const problem = `context "${name}" asks for ${missing}, which is not there`;
    throw badKubeconfig(source, problem, `Add it, or name another context. ${choices}`);
  }
  return { context: name, cluster, user };
}

/** Whether the credential has to be asked for anew from time to time. */
function isDynamic(user: User): boolean {
  return Boolean(user.exec ?? user.authProvider);
}

function refuseUnsupported(cluster: Cluster, user: User, source: KubeconfigSource, allowPlugins: boolean): void {
  const refuse = (problem: string, remedy: string): never => {
    throw badKubeconfig(source, problem, remedy);
  };
  if (isDynamic(user) && user.authProvider?.name !== 'tokenFile' && !allowPlugins) {
    const plugin = user.exec ? 'an exec plugin' : 'an auth-provider plugin';
    refuse(
      `user "${user.name}" is logged in by ${plugin}, which is not run here`,
      'Use a token or a client certificate',
    );
  }
  if (cluster.proxyUrl) {
    refuse(
      `cluster "${cluster.name}" has a proxy-url, which is not supported`,
      'Name a server that is reached directly',
    );
  }
  if (cluster.skipTLSVerify && (cluster.caData || cluster.caFile)) {
    refuse(`cluster "${cluster.name}" has a CA and insecure-skip-tls-verify`, 'Remove insecure-skip-tls-verify');
  }
  if (source.folder === undefined && (cluster.caFile || user.certFile || user.keyFile)) {
    refuse(
      'names certificate files, and there are no files beside it',
      'Embed them: kubectl config view --raw --flatten',
    );
  }
}

function serverUrl(cluster: Cluster, user: User, source: KubeconfigSource): URL {
  const url = URL.parse(cluster.server);
  if (url === null || !['https:', 'http:'].includes(url.protocol) || url.username !== '' || url.search !== '') {
    const problem = `the server of cluster "${cluster.name}" is not the URL of an API server`;
    throw badKubeconfig(source, problem, 'Write it like https://10.0.0.1:6443');
  }
  const { token, username, certData, certFile, impersonateUser } = user;
  if (url.protocol === 'http:' && (token || username || certData || certFile || impersonateUser || isDynamic(user))) {
    const problem = `cluster "${cluster.name}" is reached over http://, which would show the credential to everyone`;
    throw badKubeconfig(source, problem, 'Use https://, or a user without a credential');
  }
  return url;
}

async function clientNodeOptions(config: KubeConfig, source: KubeconfigSource): Promise<RequestOptions> {
  const options: RequestOptions = {};
  try {
    await config.applyToHTTPSOptions(options);
  } catch (error) {
    const problem = isNativeError(error) ? (error.message.split('\n', 1)[0] ?? '') : 'unknown error';
    throw badKubeconfig(source, `its certificates or credential cannot be had: ${problem}`, 'Correct what it names');
  }
  return options;
}

function headersOf({ headers, auth }: RequestOptions): Record<string, string> {
  const result: Record<string, string> = {};
  if (typeof auth === 'string') {
    result['Authorization'] = `Basic ${Buffer.from(auth).toString('base64')}`;
  }
  for (const [name, value] of Object.entries(headers ?? {})) {
    result[name] = String(value).trim();
  }
  return result;
}

function textOrBuffer(value: unknown): string | Buffer | undefined {
  return (typeof value === 'string' && value !== '') || Buffer.isBuffer(value) ? value : undefined;
}

function tlsMaterial(options: RequestOptions, source: KubeconfigSource): TlsMaterial {
  const ca = textOrBuffer(options.ca);
  const cert = textOrBuffer(options.cert);
  const key = textOrBuffer(options.key);
  try {
    if (ca !== undefined) {
      new X509Certificate(ca);
    }
    createSecureContext({ ...(cert && { cert }), ...(key && { key }) });
  } catch (error) {
    const which = isNativeError(error) && 'code' in error ? String(error.code) : 'unreadable';
    throw badKubeconfig(
      source,
      `its CA, client certificate or key does not parse (${which})`,
      'Embed PEM files as base64',
    );
  }
  return {
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
    ...(options.servername && { servername: options.servername }),
    rejectUnauthorized: options.rejectUnauthorized !== false,
  };
}
