import * as z from 'zod/mini';
import {
  CLUSTER_NAME,
  described,
  errorText,
  integer,
  optional,
  patterned,
  storedShape,
  withDefault,
} from './shapes.ts';
import {
  apiServer,
  DEFAULT_CLUSTER_IP_RANGE,
  endpointPort,
  kubeconfig,
  label,
  port,
  serviceNodePortRange,
  servicePort,
  serviceRanges,
  type webIdentity,
} from './spec-parts.ts';

/** The ids of the four loops. Files, functions, keys, metrics, logs and commands use the same ids. */
export const LOOPS = ['system-namespaces', 'kubernetes-service', 'cluster-ip-repair', 'node-port-repair'] as const;
export type Loop = (typeof LOOPS)[number];
/**
 * The loop whose function also acts for its whole stack: it counts the stack's clusters by their health, and makes the stack the
 * owner of clusters without an owner. Only the role of this function may write registrations.
 */
export const STACK_LOOP: Loop = 'kubernetes-service';

/** The shortest interval of each loop, in seconds. It equals upstream's interval and the time between two ticks of the loop. */
export const SCHEDULE_SECONDS: Readonly<Record<Loop, number>> = {
  'system-namespaces': 60,
  'kubernetes-service': 10,
  'cluster-ip-repair': 180,
  'node-port-repair': 180,
};

/** The least duration of a lease, as a multiple of the loop's interval. With this duration, a lease survives one late tick. */
export const LEASE_INTERVALS = 1.5;

export const DAY_SECONDS = 86_400;

/** A pass runs only at a tick of its loop, so an interval must be a multiple of the time between two ticks. */
function interval(loop: Loop) {
  const seconds = SCHEDULE_SECONDS[loop];
  const message = `${loop} cannot run every {} s: write a multiple of ${seconds}, its schedule, at most ${DAY_SECONDS} (a day)`;
  const type = integer(seconds, DAY_SECONDS, message).check(z.multipleOf(seconds, errorText(message)));
  return withDefault(seconds, type, `Seconds between passes: a multiple of ${seconds}, at most ${DAY_SECONDS}.`);
}

const endpoints = z.strictObject({
  reconciler: withDefault(
    'lease',
    z.enum(['lease', 'master-count', 'none'], {
      error: ({ input }) => (typeof input === 'string' ? `Reconciler not implemented: ${input}` : undefined),
    }),
    'lease: publish API servers with a valid lease. master-count: publish up to a number. none: publish nothing, and only keep the Service.',
  ),
  masterCount: withDefault(
    1,
    z.int().check(z.gte(1, errorText('{} is not above 0: write the number of API servers'))),
    'For reconciler master-count: how many API servers there are. No less than the entries of apiServers.',
  ),
  leaseSeconds: withDefault(
    15,
    z.int(),
    `How long a lease is valid after a successful probe. At most ${DAY_SECONDS} (a day), and at least ${LEASE_INTERVALS} times intervalSeconds.kubernetes-service. Ignored with reconciler none.`,
  ),
  reconcilePorts: withDefault(
    true,
    z.boolean(),
    "Correct wrong ports on every pass. Upstream's periodic pass never does: false.",
  ),
  extraPorts: withDefault([], z.array(endpointPort), 'Ports to publish besides https. Default: none.'),
  prune: optional(
    z.boolean(),
    'Delete EndpointSlices of the Service, and remove addresses that are not ready from its Endpoints, if another writer added them. Default: false.',
  ),
});

const service = z.strictObject({
  port: withDefault(443, port, 'The port of the Service.'),
  securePort: withDefault(6443, port, "The API servers' port, the target port of the Service."),
  nodePort: withDefault(
    0,
    integer(0, 65_535, '{} is not a valid node port: write 0, or a port of serviceNodePortRange'),
    '0: the Service is of type ClusterIP. Otherwise it is of type NodePort, on this port of serviceNodePortRange.',
  ),
  extraPorts: withDefault(
    [],
    z.array(servicePort),
    'More ports of the Service. No port and no node port twice for one protocol. Default: none.',
  ),
  reconcile: withDefault(
    false,
    z.boolean(),
    'Correct type and ports of the Service that another writer changed, and its address if its type was ExternalName. Upstream never does in production.',
  ),
  ipFamilyPolicy: optional(
    z.enum(['SingleStack', 'PreferDualStack']),
    'PreferDualStack: the Service gets an address of each range, and API servers of both families are published. It requires two ranges, and not the reconciler master-count. Default: SingleStack.',
  ),
});

/**
 * The cluster spec: its type, parser, stored form, JSON Schema and the table in docs/cluster-spec.md come from here. Rules
 * between fields are in `cli/spec`. Users may omit the fields that are declared with `withDefault`, `z._default` or `optional`.
 * Stored specs may lack only the last two kinds.
 */
export const writtenSpecShape = z.strictObject({
  name: described(
    patterned(CLUSTER_NAME, '{} is not a valid cluster name: use a-z, 0-9 and hyphens, at most 63 of them'),
    'The key of everything that is stored of the cluster: a-z, 0-9 and hyphens, 1 to 63 of them. Another name is another cluster.',
    { examples: ['prod-eu-1'] },
  ),
  mode: described(
    z.enum(['observe', 'enforce']),
    'observe: passes only report what they would write. enforce: they write.',
  ),
  allocator: withDefault(
    'apiserver',
    z.enum(['table', 'apiserver']),
    "What allocates cluster IPs and node ports. apiserver: the cluster's own API servers, and passes audit what Services claim. table: this project's table, through which the API servers allocate.",
  ),
  kubeconfig,
  apiServers: withDefault(
    [],
    z.array(apiServer),
    'API servers that may be published as endpoints of the kubernetes Service. At least one, unless endpoints.reconciler is none; each once.',
  ),
  serviceClusterIPRange: z.prefault(serviceRanges, DEFAULT_CLUSTER_IP_RANGE),
  serviceNodePortRange,
  endpoints: withDefault({}, endpoints, 'How the endpoints of the kubernetes Service are kept.'),
  service: withDefault({}, service, 'The Service default/kubernetes.'),
  repair: z._default(
    described(
      z.strictObject({
        ipAddresses: withDefault(
          false,
          z.boolean(),
          'Correct IPAddress objects and keep the ServiceCIDR kubernetes, for API servers that do neither. Otherwise passes only report IPAddress objects. Only with allocator apiserver.',
        ),
      }),
      'What the repair of cluster IPs corrects.',
    ),
    { ipAddresses: false },
  ),
  systemNamespaces: withDefault(
    ['kube-system', 'kube-public', 'default', 'kube-node-lease'],
    z.array(described(label('namespace name'), 'The name of a namespace.')),
    'Namespaces to create if they are missing, in this order. May be empty; each once.',
    { uniqueItems: true },
  ),
  intervalSeconds: withDefault(
    {},
    z.strictObject({
      'system-namespaces': interval('system-namespaces'),
      'kubernetes-service': interval('kubernetes-service'),
      'cluster-ip-repair': interval('cluster-ip-repair'),
      'node-port-repair': interval('node-port-repair'),
    }),
    'Seconds between passes: multiples of the schedules, as a pass runs only when its schedule does.',
  ),
  maxEventsPerPass: withDefault(
    50,
    integer(0, 10_000, '{} is not a valid number of events: write a number from 0 to 10000'),
    'Kubernetes Events that one pass writes at most: of findings, and of API servers that leave the endpoints (`ApiServerRemoved`) or return (`ApiServerReturned`). Its log line counts the rest. 0 to 10,000.',
  ),
  callerKeys: optional(
    // The fault does not quote the value, because the value may be the key itself.
    z.array(
      described(
        patterned(/^[0-9a-f]{64}$/, 'is not a SHA-256 hash in hex: write 64 of 0-9 and a-f: printf %s KEY | sha256sum'),
        'The SHA-256 of a key, in hex.',
      ),
    ),
    'Callers of the functions allocate and deregister, each by the SHA-256 of its key, in hex. An empty list: no caller. Default: every caller that IAM allows.',
    { uniqueItems: true },
  ),
});

const { serviceClusterIPRange, ...fields } = writtenSpecShape.shape;

/** The shape of a registered spec: ranges are in `serviceClusterIPRanges`, only types are checked, and unknown fields are kept. */
export const clusterSpecShape = storedShape(
  z.strictObject({ ...fields, serviceClusterIPRanges: serviceClusterIPRange }),
);

type ReadOnly<T> = { readonly [Field in keyof T]: ReadOnly<T[Field]> };

/** A cluster spec, validated, with every default filled in. The name of each duration contains the unit. */
export type ClusterSpec = ReadOnly<z.infer<typeof clusterSpecShape>>;
export type Mode = ClusterSpec['mode'];
export type AllocatorOfRecord = ClusterSpec['allocator'];
export type KubeconfigSpec = ClusterSpec['kubeconfig'];
export type WebIdentity = ReadOnly<z.infer<typeof webIdentity>>;
export type ApiServerSpec = ClusterSpec['apiServers'][number];
/** A source of the addresses of several API servers. */
export type SharedHostSpec = Extract<ApiServerSpec, { readonly host: string }>;
export type ApiServerKind = ApiServerSpec['kind'];
export type ProbeSpec = ApiServerSpec['probe'];
export type EndpointReconcilerType = ClusterSpec['endpoints']['reconciler'];

/** Returns whether the addresses of an entry come from DNS, not from a target group or a Service. */
export function isDnsName(source: Omit<SharedHostSpec, 'probe'>): boolean {
  return source.targetGroupArn === undefined && source.serviceRef === undefined;
}
