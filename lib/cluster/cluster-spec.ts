/** The four loops, with the one id that files, functions, keys, metrics, logs and commands share. */
export const LOOPS = ['system-namespaces', 'kubernetes-service', 'cluster-ip-repair', 'node-port-repair'] as const;
export type Loop = (typeof LOOPS)[number];

/** `observe`: passes only report what they would write; `enforce`: they write. */
export type Mode = 'observe' | 'enforce';

/** What allocates addresses and ports: this table, or the cluster's own API servers. */
export type AllocatorOfRecord = 'table' | 'apiserver';

/** `server`: one API server. `shared`: something in front of several, such as a load balancer. */
export type ApiServerKind = 'server' | 'shared';

export interface ProbeSpec {
  /** The whole URL to probe, when it is not `https://<address>:<securePort><path>`. */
  readonly url?: string;
  /** `/readyz`. Without meaning beside a `url`, which has its own. */
  readonly path: string;
  /** TLS server name, when the certificate does not carry the address. */
  readonly serverName?: string;
  /** Send the kubeconfig's credential. Never sent where verification is skipped. */
  readonly authenticate: boolean;
}

/**
 * One published address (canonical text), or a host name (lower case) whose every A and AAAA record is one (always
 * `shared`).
 */
export type ApiServerSpec =
  | { readonly address: string; readonly kind: ApiServerKind; readonly probe: ProbeSpec }
  | { readonly host: string; readonly kind: 'shared'; readonly probe: ProbeSpec };

export type EndpointReconcilerType = 'lease' | 'master-count' | 'none';

export interface EndpointPortSpec {
  readonly name: string;
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly port: number;
}

export interface ServicePortSpec extends EndpointPortSpec {
  readonly targetPort: number;
  readonly nodePort?: number;
}

/** An API server that accepts tokens of AWS STS whose audience is its URL. */
export interface WebIdentity {
  /** `https://203.0.113.10:6443`. */
  readonly server: string;
  /** As in a kubeconfig: PEM certificates in base64. Absent: the authorities that Node.js trusts. */
  readonly certificateAuthorityData?: string;
}

/**
 * Where the kubeconfig is, and which of its contexts counts: a file, a secret of AWS Secrets Manager (name or ARN), or a
 * parameter of AWS Systems Manager (name or ARN). `roleArn`: the role to read it as, where it is another account's.
 * `webIdentity` stands for a kubeconfig without a stored credential.
 */
export type KubeconfigSpec =
  | { readonly file: string; readonly context?: string }
  | { readonly secretsManager: string; readonly roleArn?: string; readonly context?: string }
  | { readonly ssm: string; readonly roleArn?: string; readonly context?: string }
  | { readonly webIdentity: WebIdentity };

/** A validated cluster spec with every default filled in. Durations carry their unit in the name. */
export interface ClusterSpec {
  /** `[a-z0-9-]{1,63}`. */
  readonly name: string;
  readonly mode: Mode;
  readonly allocator: AllocatorOfRecord;
  readonly kubeconfig: KubeconfigSpec;
  readonly apiServers: readonly ApiServerSpec[];
  /** Canonical CIDR texts: the primary, and perhaps a secondary of the other family. Default `10.0.0.0/24`. */
  readonly serviceClusterIPRanges: readonly [string] | readonly [string, string];
  /** Canonical text, `30000-32767` by default. */
  readonly serviceNodePortRange: string;
  readonly endpoints: {
    readonly reconciler: EndpointReconcilerType;
    /** Only for `master-count`. */
    readonly masterCount: number;
    readonly leaseSeconds: number;
    /** `false` is what the original's periodic pass does: wrong ports alone are never fixed. */
    readonly reconcilePorts: boolean;
    readonly extraPorts: readonly EndpointPortSpec[];
  };
  readonly service: {
    /** The Service's port, 443. */
    readonly port: number;
    /** The API servers' port, 6443. */
    readonly securePort: number;
    /** 0: the Service is of type ClusterIP. */
    readonly nodePort: number;
    readonly extraPorts: readonly ServicePortSpec[];
    /** Correct type and ports when they were changed. The original never does in production. */
    readonly reconcile: boolean;
  };
  readonly repair: {
    /** Correct the IPAddresses of the cluster where the API servers do not; otherwise passes only report them. */
    readonly ipAddresses: boolean;
  };
  readonly systemNamespaces: readonly string[];
  readonly intervalSeconds: Readonly<Record<Loop, number>>;
  readonly maxEventsPerPass: number;
  /** SHA-256 of the keys of callers of `allocate` and `deregister`, in hex. Absent: every caller that IAM lets invoke them. */
  readonly callerKeys?: readonly string[];
}

/** How often each loop is due at most, in seconds: the original's intervals, and what the schedules invoke. */
export const SCHEDULE_SECONDS: Readonly<Record<Loop, number>> = {
  'system-namespaces': 60,
  'kubernetes-service': 10,
  'cluster-ip-repair': 180,
  'node-port-repair': 180,
};

/** A lease lives through one tick that comes late: its seconds are at least this many intervals. */
export const LEASE_INTERVALS = 1.5;
