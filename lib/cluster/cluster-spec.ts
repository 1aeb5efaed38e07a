import * as z from 'zod/mini';

/** The four loops, with the one id that files, functions, keys, metrics, logs and commands share. */
export const LOOPS = ['system-namespaces', 'kubernetes-service', 'cluster-ip-repair', 'node-port-repair'] as const;
export type Loop = (typeof LOOPS)[number];
/**
 * The loop whose function also acts for its whole stack: it counts the fleet, and claims clusters without an owner, for which
 * its role alone may write registrations.
 */
export const STACK_LOOP: Loop = 'kubernetes-service';

const text = z.string();
const optionalText = z.exactOptional(text);
/** A whole number of at least 0. */
const count = z.int().check(z.gte(0));

const webIdentity = z.looseObject({
  /** `https://203.0.113.10:6443`. */
  server: text,
  /** As in a kubeconfig: PEM certificates in base64. Absent: the authorities that Node.js trusts. */
  certificateAuthorityData: optionalText,
});

/**
 * Where the kubeconfig is, and which of its contexts counts: a file, a secret of AWS Secrets Manager (name or ARN), or a
 * parameter of AWS Systems Manager (name or ARN). `roleArn`: the role to read it as, where it is another account's.
 * `webIdentity` stands for a kubeconfig without a stored credential.
 */
const kubeconfig = z.union([
  z.looseObject({ secretsManager: text, roleArn: optionalText, context: optionalText }),
  z.looseObject({ ssm: text, roleArn: optionalText, context: optionalText }),
  z.looseObject({ webIdentity }),
  z.looseObject({ file: text, context: optionalText }),
]);

const probe = z.looseObject({
  /** The whole URL to probe, when it is not `https://<address>:<securePort><path>`. */
  url: optionalText,
  /** `/readyz`. Without meaning beside a `url`, which has its own. */
  path: text,
  /** TLS server name, when the certificate does not carry the address. */
  serverName: optionalText,
  /** Send the kubeconfig's credential. Never sent where verification is skipped. */
  authenticate: z.boolean(),
});

/** `server`: one API server. `shared`: something in front of several, such as a load balancer. */
const kind = z.enum(['server', 'shared']);

/**
 * One published address (canonical text), or a host name (lower case) whose every A and AAAA record is one (always
 * `shared`).
 */
const apiServer = z.union(
  [z.looseObject({ address: text, kind, probe }), z.looseObject({ host: text, kind: z.literal('shared'), probe })],
  'is neither an address nor a shared host, with its probe',
);

const endpointPort = z.looseObject({ name: text, protocol: z.enum(['TCP', 'UDP', 'SCTP']), port: count });
const servicePort = z.extend(endpointPort, { targetPort: count, nodePort: z.exactOptional(z.number()) });

/**
 * A cluster spec as it is registered: validated, with every default filled in. Durations carry their unit in the name.
 * Only types are checked, and fields of a later version stay. `lib/spec` reads the form in which people write it.
 */
export const clusterSpecShape = z.looseObject({
  /** `[a-z0-9-]{1,63}`. */
  name: text,
  /** `observe`: passes only report what they would write; `enforce`: they write. */
  mode: z.enum(['observe', 'enforce']),
  /** What allocates addresses and ports: this table, or the cluster's own API servers. */
  allocator: z.enum(['table', 'apiserver']),
  kubeconfig,
  apiServers: z.array(apiServer),
  /** Canonical CIDR texts: the primary, and perhaps a secondary of the other family. Default `10.0.0.0/24`. */
  serviceClusterIPRanges: z.union([z.tuple([text]), z.tuple([text, text])], 'is not one range or two'),
  /** Canonical text, `30000-32767` by default. */
  serviceNodePortRange: text,
  endpoints: z.looseObject({
    reconciler: z.enum(['lease', 'master-count', 'none']),
    /** Only for `master-count`. */
    masterCount: count,
    leaseSeconds: count,
    /** `false` is what the original's periodic pass does: wrong ports alone are never fixed. */
    reconcilePorts: z.boolean(),
    extraPorts: z.array(endpointPort),
  }),
  service: z.looseObject({
    /** The Service's port, 443. */
    port: count,
    /** The API servers' port, 6443. */
    securePort: count,
    /** 0: the Service is of type ClusterIP. */
    nodePort: count,
    extraPorts: z.array(servicePort),
    /** Correct type and ports when they were changed. The original never does in production. */
    reconcile: z.boolean(),
  }),
  repair: z._default(
    z.looseObject({
      /** Correct the IPAddresses of the cluster where the API servers do not; otherwise passes only report them. */
      ipAddresses: z.boolean(),
    }),
    { ipAddresses: false },
  ),
  systemNamespaces: z.array(text),
  intervalSeconds: z.record(z.enum(LOOPS), count),
  maxEventsPerPass: count,
  /** SHA-256 of the keys of callers of `allocate` and `deregister`, in hex. Absent: every caller that IAM lets invoke them. */
  callerKeys: z.exactOptional(z.array(text)),
});

/** What a shape names: read-only, and without the fields that it only lets through. */
type Named<T> = T extends readonly unknown[]
  ? { readonly [Index in keyof T]: Named<T[Index]> }
  : T extends object
    ? { readonly [Field in keyof T as string extends Field ? never : Field]: Named<T[Field]> }
    : T;

export type ClusterSpec = Named<z.infer<typeof clusterSpecShape>>;
export type Mode = ClusterSpec['mode'];
export type AllocatorOfRecord = ClusterSpec['allocator'];
export type KubeconfigSpec = ClusterSpec['kubeconfig'];
export type WebIdentity = Named<z.infer<typeof webIdentity>>;
export type ApiServerSpec = ClusterSpec['apiServers'][number];
export type ApiServerKind = z.infer<typeof kind>;
export type ProbeSpec = ApiServerSpec['probe'];
export type EndpointReconcilerType = ClusterSpec['endpoints']['reconciler'];

/** How often each loop is due at most, in seconds: the original's intervals, and what the schedules invoke. */
export const SCHEDULE_SECONDS: Readonly<Record<Loop, number>> = {
  'system-namespaces': 60,
  'kubernetes-service': 10,
  'cluster-ip-repair': 180,
  'node-port-repair': 180,
};

/** A lease lives through one tick that comes late: its seconds are at least this many intervals. */
export const LEASE_INTERVALS = 1.5;
