/** The kind of a kubeconfig: a stored text, the file of a registered cluster, or a user's own file (`--kubeconfig`). */
export type Reader = 'stored' | 'registered' | 'own';
const ALL: readonly Reader[] = ['stored', 'registered', 'own'];

const USE_A_TOKEN = 'Use a token or a client certificate';

function refusal(by: readonly Reader[], reason: string, remedy: string) {
  return { by, reason, remedy };
}
type Refusal = Readonly<ReturnType<typeof refusal>>;

// docs/kubeconfig-secret.md explains what is refused.
const FILE = refusal(['stored'], 'a stored kubeconfig has no files', 'Embed it: kubectl config view --raw --flatten');
const PLUGIN = refusal(['stored', 'registered'], 'a plugin runs only with --kubeconfig of kbctl', USE_A_TOKEN);
const PASSWORD = refusal(ALL, 'API servers no longer accept a user name and a password', USE_A_TOKEN);
const PROXY = refusal(ALL, 'a proxy is not supported', 'Name a server that is reached directly');
const AS = refusal(ALL, 'impersonation is not supported', 'Give the user itself the rights that it needs');

interface Values {
  string: string;
  boolean: boolean;
  object: object;
  list: readonly unknown[];
}

export interface Field<Type extends keyof Values = keyof Values> {
  readonly type: Type;
  readonly refusal: Refusal | undefined;
}

function each<Type extends keyof Values, Name extends string>(type: Type, names: readonly Name[], refusal?: Refusal) {
  return Object.fromEntries(names.map((name) => [name, { type, refusal }])) as Record<Name, Field<Type>>;
}

/** The fields of each mapping, as in `k8s.io/client-go/tools/clientcmd/api/v1`. */
export const FIELDS = {
  kubeconfig: {
    ...each('string', ['apiVersion', 'kind', 'current-context']),
    ...each('list', ['clusters', 'contexts', 'users', 'extensions']),
    ...each('object', ['preferences']),
  },
  context: { ...each('string', ['cluster', 'user', 'namespace']), ...each('list', ['extensions']) },
  cluster: {
    ...each('string', ['server', 'tls-server-name', 'certificate-authority-data']),
    ...each('boolean', ['insecure-skip-tls-verify', 'disable-compression']),
    ...each('list', ['extensions']),
    ...each('string', ['certificate-authority'], FILE),
    ...each('string', ['proxy-url'], PROXY),
  },
  user: {
    ...each('string', ['token', 'client-certificate-data', 'client-key-data']),
    ...each('list', ['extensions']),
    ...each('string', ['tokenFile', 'client-certificate', 'client-key'], FILE),
    ...each('object', ['exec', 'auth-provider'], PLUGIN),
    ...each('string', ['username', 'password'], PASSWORD),
    ...each('object', ['as', 'as-uid', 'as-groups', 'as-user-extra'], AS),
  },
};

export type Kind = keyof typeof FIELDS;
/** The fields of a mapping that have a value. */
export type Fields<Of extends Kind> = {
  readonly [Name in keyof (typeof FIELDS)[Of]]?: (typeof FIELDS)[Of][Name] extends Field<infer Type>
    ? Values[Type]
    : never;
};

/** A mapping of a kubeconfig, such as the entry of a cluster. */
export interface Found<Of extends Kind> {
  /** The name of the mapping in messages, such as `cluster "prod"`. */
  readonly place: string;
  readonly fields: Fields<Of>;
  /** The unknown fields of the mapping, such as `cluster.api-version`. */
  readonly ignored: readonly string[];
}
