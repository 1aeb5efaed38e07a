import * as z from 'zod/mini';

/** The four loops, by the id that files, functions, keys, metrics, logs and commands share. */
export const LOOPS = ['system-namespaces', 'kubernetes-service', 'cluster-ip-repair', 'node-port-repair'] as const;
export type Loop = (typeof LOOPS)[number];
/**
 * The loop whose function also acts for its whole stack: it counts the fleet, and claims clusters without an owner, for which
 * its role alone may write registrations.
 */
export const STACK_LOOP: Loop = 'kubernetes-service';

const text = z.string();
const optionalText = z.exactOptional(text);
/** An integer of at least 0. */
const count = z.int().check(z.gte(0));

const webIdentity = z.looseObject({
  /** `https://203.0.113.10:6443`. */
  server: text,
  /** As in a kubeconfig: PEM certificates in base64. Absent: the authorities that Node.js trusts. */
  certificateAuthorityData: optionalText,
});

/**
 * The place of the kubeconfig, and the context to use: a file, a secret of AWS Secrets Manager (name or ARN), or a
 * parameter of AWS Systems Manager (name or ARN). `roleArn`: the role of another account to read it with. `webIdentity`
 * replaces a stored credential.
 */
const kubeconfig = z.union([
  z.looseObject({ secretsManager: text, roleArn: optionalText, context: optionalText }),
  z.looseObject({ ssm: text, roleArn: optionalText, context: optionalText }),
  z.looseObject({ webIdentity }),
  z.looseObject({ file: text, context: optionalText }),
]);

const probe = z.looseObject({
  /** The whole URL to probe, if it is not `https://<address>:<securePort><path>`. */
  url: optionalText,
  /** `/readyz`. Ignored with `url`. */
  path: text,
  /** The TLS server name, if the certificate does not contain the address. */
  serverName: optionalText,
  /** Send the kubeconfig's credential. Never sent if verification is disabled. */
  authenticate: z.boolean(),
});

/** `server`: one API server. `shared`: a load balancer or the like in front of several. */
const kind = z.enum(['server', 'shared']);

/**
 * One published address (canonical text), or a host name (lower case) whose A and AAAA records are published (always
 * `shared`).
 */
const apiServer = z.union(
  [z.looseObject({ address: text, kind, probe }), z.looseObject({ host: text, kind: z.literal('shared'), probe })],
  'is neither an address nor a shared host, with its probe',
);

const endpointPort = z.looseObject({ name: text, protocol: z.enum(['TCP', 'UDP', 'SCTP']), port: count });
const servicePort = z.extend(endpointPort, { targetPort: count, nodePort: z.exactOptional(z.number()) });

/**
 * A registered cluster spec: validated, with every default filled in. Durations have their unit in the name. Only types
 * are checked, and fields of a later version stay. `lib/spec` reads the form that users write.
 */
export const clusterSpecShape = z.looseObject({
  /** `[a-z0-9-]{1,63}`. */
  name: text,
  /** `observe`: passes only report what they would write. `enforce`: they write. */
  mode: z.enum(['observe', 'enforce']),
  /** The allocator of addresses and ports: this table, or the cluster's own API servers. */
  allocator: z.enum(['table', 'apiserver']),
  kubeconfig,
  apiServers: z.array(apiServer),
  /**
   * Canonical CIDR texts: the primary range, and perhaps a secondary one of the other family. Default: `10.0.0.0/24`.
   */
  serviceClusterIPRanges: z.union([z.tuple([text]), z.tuple([text, text])], 'is not one range or two'),
  /** Canonical text. Default: `30000-32767`. */
  serviceNodePortRange: text,
  endpoints: z.looseObject({
    reconciler: z.enum(['lease', 'master-count', 'none']),
    /** Only for `master-count`. */
    masterCount: count,
    leaseSeconds: count,
    /** `false`: as upstream's periodic pass, which never corrects wrong ports alone. */
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
    /** Correct type and ports that were changed. Upstream never does in production. */
    reconcile: z.boolean(),
  }),
  repair: z._default(
    z.looseObject({
      /** Correct the IPAddresses of the cluster, for API servers that do not; otherwise passes only report them. */
      ipAddresses: z.boolean(),
    }),
    { ipAddresses: false },
  ),
  systemNamespaces: z.array(text),
  intervalSeconds: z.record(z.enum(LOOPS), count),
  maxEventsPerPass: count,
  /** SHA-256 of the keys of callers of `allocate` and `deregister`, in hex. Absent: every caller that IAM allows. */
  callerKeys: z.exactOptional(z.array(text)),
});

/** The fields that a shape names, read-only, without others that it accepts. */
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

/** The shortest interval of each loop in seconds: upstream's intervals, and the schedules. */
export const SCHEDULE_SECONDS: Readonly<Record<Loop, number>> = {
  'system-namespaces': 60,
  'kubernetes-service': 10,
  'cluster-ip-repair': 180,
  'node-port-repair': 180,
};

/** A lease survives one late tick: its seconds are at least this many intervals. */
export const LEASE_INTERVALS = 1.5;
