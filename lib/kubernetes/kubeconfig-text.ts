import { resolve } from 'node:path';
import { isNativeError } from 'node:util/types';
import { KubeConfig } from '@kubernetes/client-node';
import { LineCounter, parseDocument } from 'yaml';
import { ClusterError } from './errors.ts';

export interface KubeconfigSource {
  /** For messages. */
  readonly name: string;
  /** Folder that relative file names start from. Without one a kubeconfig may name no files. */
  readonly folder?: string;
}

/** `problem` and `remedy` never quote a value of the kubeconfig other than names of its entries. */
export function badKubeconfig(source: KubeconfigSource, problem: string, remedy: string): ClusterError {
  return new ClusterError('BadKubeconfig', `${source.name}: ${problem}. ${remedy}.`);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** client-node's own parser quotes the text around a fault, which may be a key. Here only the place is told. */
function yamlValue(text: string, source: KubeconfigSource): unknown {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [fault] = document.errors;
  if (fault === undefined) {
    return document.toJS();
  }
  const where = `line ${lines.linePos(fault.pos[0]).line}: ${fault.code}`;
  throw badKubeconfig(source, `is not YAML (${where})`, 'Write it anew, for example with kubectl config view --raw');
}

/** client-node knows `tokenFile` only as an auth provider, and passes over the finer kinds of impersonation. */
function translatedUser(entry: unknown, source: KubeconfigSource): unknown {
  if (!isRecord(entry) || !isRecord(entry['user'])) {
    return entry;
  }
  const user = entry['user'];
  const finer = ['as-groups', 'as-uid', 'as-user-extra'].find((field) => user[field] !== undefined);
  if (finer !== undefined) {
    const problem = `user "${String(entry['name'])}" has ${finer}, which is not supported`;
    throw badKubeconfig(source, problem, 'Give the user itself the rights that it needs');
  }
  if (typeof user['tokenFile'] !== 'string') {
    return entry;
  }
  if (source.folder === undefined) {
    throw badKubeconfig(source, 'names a token file, and there are no files beside it', 'Embed the token itself');
  }
  const tokenFile = resolve(source.folder, user['tokenFile']);
  return { ...entry, user: { ...user, 'auth-provider': { name: 'tokenFile', config: { tokenFile } } } };
}

/** Throws a `ClusterError` with code `BadKubeconfig`. */
export function kubeConfigFromText(text: string, source: KubeconfigSource): KubeConfig {
  const value = yamlValue(text, source);
  if (!isRecord(value) || !Array.isArray(value['clusters']) || !Array.isArray(value['contexts'])) {
    throw badKubeconfig(source, 'is not a kubeconfig: clusters or contexts are missing', 'Name a file of kind Config');
  }
  const users = Array.isArray(value['users']) ? value['users'].map((user) => translatedUser(user, source)) : [];
  const config = new KubeConfig();
  try {
    config.loadFromString(JSON.stringify({ ...value, users }));
  } catch (error) {
    // client-node names a field, such as `clusters[0].cluster.server is missing`; it has seen no syntax error.
    const field = isNativeError(error) ? error.message : 'unreadable';
    throw badKubeconfig(
      source,
      `is not a kubeconfig: ${field}`,
      'Write it anew, for example with kubectl config view --raw',
    );
  }
  if (source.folder !== undefined) {
    config.makePathsAbsolute(source.folder);
  }
  return config;
}
