import { loadAll, YAMLException } from 'js-yaml';
import * as z from 'zod/mini';
import { boundedText } from '../util/values.ts';
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

const LIST_OF_FIELDS = 'docs/kubeconfig-secret.md lists what a kubeconfig may contain';
const WRITE_AGAIN = 'Write it again, for example with kubectl config view --raw';

/** Returns the error for a kubeconfig. `problem` and `remedy` may quote names of entries, but no other values. */
export function badKubeconfig(source: KubeconfigSource, problem: string, remedy: string): ClusterError {
  return new ClusterError('BadKubeconfig', `${source.name}: ${problem}. ${remedy}.`);
}

/**
 * Reads a kubeconfig. Refuses unknown fields, and refuses plugins unless they are allowed. Throws a `ClusterError` with code
 * `BadKubeconfig`. No other parser reads the text.
 */
export function readKubeconfig(text: string, source: KubeconfigSource, allowPlugins: boolean): Kubeconfig {
  const longest = source.folder === undefined ? LONGEST_STORED_TEXT : LONGEST_FILE;
  if (text.length > longest) {
    throw badKubeconfig(source, `is longer than ${longest} characters`, 'Keep the cluster that is used, and no other');
  }
  if (source.folder === undefined && (text.match(MARKS)?.length ?? 0) > MOST_STORED_MARKS) {
    const problem = `has more than ${MOST_STORED_MARKS} line breaks and punctuation marks`;
    throw badKubeconfig(source, problem, 'Keep the cluster that is used, and no other');
  }
  const parsed = kubeconfigShape.safeParse(yamlValue(text, source));
  if (!parsed.success) throw shapeFault(parsed.error.issues, source);
  if (!allowPlugins) refusePlugins(parsed.data, source);
  return parsed.data;
}

/**
 * Parses YAML. An error contains only the line number of the fault, because the parser's message quotes the text, which may
 * contain a private key.
 */
function yamlValue(text: string, source: KubeconfigSource): unknown {
  let documents: unknown[] = [];
  let fault: string | undefined;
  try {
    documents = loadAll(text, { maxAliases: 0 });
    if (documents.length > 1) fault = 'it has a second document';
  } catch (error) {
    const mark = error instanceof YAMLException ? error.mark : undefined;
    fault = mark ? `line ${mark.line + 1}` : 'its parser failed';
  }
  if (fault !== undefined) throw badKubeconfig(source, `is not YAML (${fault})`, WRITE_AGAIN);
  return documents[0];
}

function shapeFault([issue]: readonly z.core.$ZodIssue[], source: KubeconfigSource): ClusterError {
  const at = (issue?.path ?? []).map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('');
  const place = at.replace('.', '');
  if (issue?.code === 'unrecognized_keys') {
    const problem = `${place || 'its top level'} has ${fieldName(issue.keys[0])}, which is not a field of a kubeconfig`;
    return badKubeconfig(source, problem, `Remove it: ${LIST_OF_FIELDS}`);
  }
  if (issue === undefined || issue.path.length < 2) {
    const problem = 'is not a kubeconfig: clusters, contexts or users are missing or are not lists';
    return badKubeconfig(source, problem, 'Name a file of kind Config');
  }
  return badKubeconfig(source, `is not a kubeconfig: ${place} is missing or has the wrong type`, WRITE_AGAIN);
}

/** Returns the name of a key for a message, or "a key" if the name may be a misplaced secret. */
function fieldName(key: string | undefined): string {
  return key !== undefined && /^[A-Za-z-]{1,40}$/.test(key) ? key : 'a key';
}

function refusePlugins({ users }: Kubeconfig, source: KubeconfigSource): void {
  for (const { name, user } of users ?? []) {
    const plugin = user?.exec ? 'an exec plugin' : user?.['auth-provider'] ? 'an auth-provider plugin' : undefined;
    if (plugin !== undefined) {
      const problem = `user "${boundedText(name, 60)}" authenticates with ${plugin}, which is refused here`;
      throw badKubeconfig(source, problem, 'Use a token or a client certificate');
    }
  }
}

/** Returns a shape that accepts `null` as an absent field, as Go does. */
function optional<Shape extends z.core.SomeType>(shape: Shape) {
  return z.optional(z.nullable(shape));
}

const text = z.string();
const perhapsText = optional(text);
const perhapsTrue = optional(z.boolean());
const anything = z.optional(z.unknown());
const name = z.string().check(z.minLength(1));

const cluster = z.strictObject({
  server: name,
  'tls-server-name': perhapsText,
  'insecure-skip-tls-verify': perhapsTrue,
  'certificate-authority': perhapsText,
  'certificate-authority-data': perhapsText,
  'proxy-url': perhapsText,
  'disable-compression': perhapsTrue,
  extensions: anything,
});

const user = z.strictObject({
  'client-certificate': perhapsText,
  'client-certificate-data': perhapsText,
  'client-key': perhapsText,
  'client-key-data': perhapsText,
  token: perhapsText,
  tokenFile: perhapsText,
  username: perhapsText,
  password: perhapsText,
  as: perhapsText,
  'as-uid': perhapsText,
  'as-groups': anything,
  'as-user-extra': anything,
  exec: optional(z.record(text, z.unknown())),
  'auth-provider': optional(z.record(text, z.unknown())),
  extensions: anything,
});

const context = z.strictObject({
  cluster: name,
  user: perhapsText,
  namespace: perhapsText,
  extensions: anything,
});

/** All fields of a kubeconfig, as in `k8s.io/client-go/tools/clientcmd/api/v1`. */
export const kubeconfigShape = z.strictObject({
  apiVersion: perhapsText,
  kind: perhapsText,
  preferences: anything,
  extensions: anything,
  'current-context': perhapsText,
  clusters: z.array(z.strictObject({ name, cluster })),
  contexts: z.array(z.strictObject({ name, context })),
  users: optional(z.array(z.strictObject({ name, user: optional(user) }))),
});

export type Kubeconfig = z.infer<typeof kubeconfigShape>;
export type KubeconfigCluster = z.infer<typeof cluster>;
export type KubeconfigUser = z.infer<typeof user>;
