import * as z from 'zod/mini';
import { LEASE_INTERVALS, type Loop, SCHEDULE_SECONDS } from '../cluster/cluster-spec.ts';
import { described } from '../cluster/described.ts';
import { DEFAULT_CLUSTER_IP_RANGE } from '../cluster/spec-ranges.ts';
import { SERVER_PATTERN } from './names.ts';

/** Upstream's defaults, and our own for other fields. */
export const SPEC_DEFAULTS = {
  allocator: 'apiserver',
  apiServers: [],
  serviceClusterIPRange: DEFAULT_CLUSTER_IP_RANGE,
  serviceNodePortRange: '30000-32767',
  endpoints: { reconciler: 'lease', masterCount: 1, leaseSeconds: 15, reconcilePorts: true, extraPorts: [] },
  service: { port: 443, securePort: 6443, nodePort: 0, extraPorts: [], reconcile: false },
  repair: { ipAddresses: false },
  systemNamespaces: ['kube-system', 'kube-public', 'default', 'kube-node-lease'],
  intervalSeconds: SCHEDULE_SECONDS,
  maxEventsPerPass: 50,
} as const;

/** The message lists the fields, so that users find the right name. */
function mapping<Fields extends z.core.$ZodLooseShape>(fields: Fields) {
  return z.strictObject(fields, {
    error: ({ code }) => (code === 'unrecognized_keys' ? Object.keys(fields).join(' ') : undefined),
  });
}

const DAY_SECONDS = 86_400;
const PORT = { minimum: 1, maximum: 65_535 };
const LABEL = { pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$', maxLength: 63 };
const text = z.string().check(z.minLength(1));

const probe = described(
  mapping({
    url: z.exactOptional(
      described(
        text,
        'The URL to probe instead of https://<address>:<service.securePort><path>: a whole http or https URL without a credential. Not beside path.',
        { examples: ['https://10.20.0.11:6443/readyz'] },
      ),
    ),
    path: z.exactOptional(
      described(text, 'Path to probe. Begins with a slash. Not beside url.', {
        default: '/readyz',
        pattern: '^/[^\\s#]*$',
      }),
    ),
    serverName: z.exactOptional(
      described(text, 'TLS server name, when the certificate does not carry the address.', {
        examples: ['kubernetes'],
      }),
    ),
    authenticate: z._default(described(z.boolean(), "Send the kubeconfig's credential. Never over http."), false),
  }),
  'How it is probed.',
  { not: { required: ['url', 'path'] } },
);

const apiServer = described(
  mapping({
    address: z.exactOptional(
      described(
        text,
        "The address to publish, which clients in the cluster reach. Not unspecified, loopback, link-local or multicast; of the family of the first service range, unless the reconciler is none. auto is for runs on the API server's own host alone.",
        { examples: ['203.0.113.10', '2001:db8::10'] },
      ),
    ),
    host: z.exactOptional(
      described(
        text,
        'A DNS name whose every A and AAAA record is published, up to 32. No scheme, no port; always of kind shared.',
        {
          maxLength: 253,
          examples: ['api.prod-eu-1.example.com'],
        },
      ),
    ),
    kind: z.exactOptional(
      described(
        z.enum(['server', 'shared']),
        'server: one API server. shared: something in front of several, such as a load balancer. Default: server for an address, shared for a host.',
      ),
    ),
    probe: z.prefault(probe, {}),
  }),
  'One API server by its address, or several by a host name.',
  {
    oneOf: [
      { required: ['address'], properties: { host: false } },
      { required: ['host'], properties: { address: false, kind: { const: 'shared' } } },
    ],
  },
);

const webIdentity = described(
  mapping({
    server: described(text, 'The https URL of the API server, which is also the audience of the tokens.', {
      pattern: SERVER_PATTERN,
      examples: ['https://203.0.113.10:6443'],
    }),
    certificateAuthorityData: z.exactOptional(
      described(text, 'The certificate-authority-data of a kubeconfig. Default: the authorities that Node.js trusts.'),
    ),
  }),
  'An API server that accepts tokens of AWS STS: no kubeconfig and no token is stored.',
);

const kubeconfig = described(
  mapping({
    file: z.exactOptional(
      described(text, "A kubeconfig in a file: beside the functions' code, or on your machine.", {
        examples: ['./prod-eu-1.kubeconfig'],
      }),
    ),
    secretsManager: z.exactOptional(
      described(
        text,
        'A kubeconfig in a secret of AWS Secrets Manager: a name in the region and account of the functions, or an ARN.',
        {
          examples: ['kube-bootstrap-controller/dev/prod-eu-1'],
        },
      ),
    ),
    ssm: z.exactOptional(
      described(text, 'A kubeconfig in a parameter of AWS Systems Manager, a SecureString: a name, or an ARN.', {
        examples: ['/kube-bootstrap-controller/dev/prod-eu-1'],
      }),
    ),
    webIdentity: z.exactOptional(webIdentity),
    roleArn: z.exactOptional(
      described(
        text,
        "The role to read secret or parameter as, when it is another account's: one that trusts the functions. Not beside file.",
        {
          pattern: '^arn:aws[\\w-]*:iam::\\d{12}:role/',
          examples: ['arn:aws:iam::123456789012:role/read-kubeconfigs'],
        },
      ),
    ),
    context: z.exactOptional(described(text, 'Which context of the kubeconfig. Default: its current context.')),
  }),
  'How the loops reach the cluster: exactly one of secretsManager, ssm, webIdentity and file. docs/kubeconfig-secret.md explains how to make each.',
  {
    oneOf: [
      { required: ['secretsManager'] },
      { required: ['ssm'] },
      { required: ['file'], properties: { roleArn: false } },
      { required: ['webIdentity'], properties: { roleArn: false, context: false } },
    ],
  },
);

const portName = described(
  text,
  'Name of the port: a-z, 0-9 and hyphens inside, at most 63 of them. Not https, and each name once.',
  {
    ...LABEL,
    not: { const: 'https' },
  },
);
const protocol = z._default(described(z.enum(['TCP', 'UDP', 'SCTP']), 'Protocol of the port.'), 'TCP');

const endpointPort = mapping({
  name: portName,
  protocol,
  port: described(z.int(), 'The port that the API servers serve.', PORT),
});

const servicePort = mapping({
  name: portName,
  protocol,
  port: described(z.int(), 'Port of the Service.', PORT),
  targetPort: z.exactOptional(described(z.int(), 'Where it leads. Default: the same as port.', PORT)),
  nodePort: z.exactOptional(
    described(z.int(), 'A port of serviceNodePortRange, only when service.nodePort is not 0.', PORT),
  ),
});

const endpoints = described(
  mapping({
    reconciler: described(
      z.enum(['lease', 'master-count', 'none'], {
        error: ({ input }) => (typeof input === 'string' ? `Reconciler not implemented: ${input}` : undefined),
      }),
      'lease: publish API servers with a valid lease. master-count: publish up to a number. none: publish nothing, and only keep the Service.',
    ),
    masterCount: described(
      z.int(),
      'For reconciler master-count: how many API servers there are. No less than the entries of apiServers.',
      { minimum: 1 },
    ),
    leaseSeconds: described(
      z.int(),
      `How long a lease is valid after a successful probe. At most a day, and at least ${LEASE_INTERVALS} times intervalSeconds.kubernetes-service. Ignored with reconciler none.`,
    ),
    reconcilePorts: described(
      z.boolean(),
      "Correct wrong ports on every pass. The original's periodic pass never does: false.",
    ),
    extraPorts: described(z.array(endpointPort), 'Ports to publish besides https. Default: none.'),
  }),
  'How the endpoints of the kubernetes Service are kept.',
);

const service = described(
  mapping({
    port: described(z.int(), 'Port of the Service.', PORT),
    securePort: described(z.int(), "The API servers' port, where the Service leads.", PORT),
    nodePort: described(
      z.int(),
      '0: the Service is of type ClusterIP. Else it is of type NodePort, on this port of serviceNodePortRange.',
      { minimum: 0, maximum: 65_535 },
    ),
    extraPorts: described(
      z.array(servicePort),
      'More ports of the Service. No port and no node port twice for one protocol. Default: none.',
    ),
    reconcile: described(
      z.boolean(),
      'Correct type and ports of the Service when they were changed. The original never does.',
    ),
  }),
  'The Service default/kubernetes.',
);

function interval(loop: Loop, what: string) {
  const seconds = SCHEDULE_SECONDS[loop];
  return described(
    z.int(),
    `Seconds from one pass to the next, of the loop that ${what}. A multiple of ${seconds}, at most ${DAY_SECONDS} (a day).`,
    { minimum: seconds, maximum: DAY_SECONDS, multipleOf: seconds },
  );
}

/**
 * The YAML file with every default of {@link SPEC_DEFAULTS}, and the descriptions that editors show. Limits of values,
 * and rules between fields, are in this folder's `...-rules.ts`.
 */
export const specShape = mapping({
  name: described(
    text,
    'Key of everything that is kept about the cluster: a-z, 0-9 and hyphens, 1 to 63 of them. Another name is another cluster.',
    {
      pattern: '^[a-z0-9-]{1,63}$',
      examples: ['prod-eu-1'],
    },
  ),
  mode: described(
    z.enum(['observe', 'enforce']),
    'observe: passes only report what they would write. enforce: they write. There is no default.',
  ),
  allocator: described(
    z.enum(['table', 'apiserver']),
    "What allocates cluster IPs and node ports. apiserver: the cluster's own API servers, and passes audit what Services claim. table: this project's table, for API servers whose Service storage allocates through it.",
  ),
  kubeconfig,
  apiServers: described(
    z.array(apiServer),
    'API servers that may be published as endpoints of the kubernetes Service. At least one, unless endpoints.reconciler is none; each once.',
  ),
  serviceClusterIPRange: described(
    z.union([
      described(z.string(), 'One CIDR, or two with a comma and no space between.'),
      described(z.array(z.string()), 'One CIDR, or two.', { minItems: 1, maxItems: 2 }),
    ]),
    "The API servers' --service-cluster-ip-range: one CIDR, or two of different families, in one text with a comma and no space between, or as a list. The first has 8 addresses or more. With allocator table at most 20 host bits each.",
    { examples: ['10.0.0.0/16', '10.0.0.0/16,fd00:10::/112', ['10.0.0.0/16', 'fd00:10::/112']] },
  ),
  serviceNodePortRange: described(
    z.union([
      described(z.string(), 'A-B, A+N, or one port.'),
      described(z.int(), 'One port.', { minimum: 0, maximum: 65_535 }),
    ]),
    "The API servers' --service-node-port-range: A-B, A+N (A and the N ports after it), or one port.",
    { examples: ['30000-32767', '30000+2767'] },
  ),
  endpoints,
  service,
  repair: described(
    mapping({
      ipAddresses: described(
        z.boolean(),
        'With allocator apiserver: correct IPAddress objects, for clusters whose API servers run without their own repair. Otherwise passes only report them.',
      ),
    }),
    'What the repair of cluster IPs corrects.',
  ),
  systemNamespaces: described(
    z.array(described(text, 'Name of a namespace.', LABEL)),
    'Namespaces that are created when they are missing, in this order. May be empty; each once.',
    { uniqueItems: true },
  ),
  intervalSeconds: described(
    mapping({
      'system-namespaces': interval('system-namespaces', 'creates missing namespaces'),
      'kubernetes-service': interval('kubernetes-service', 'keeps the kubernetes Service and its endpoints'),
      'cluster-ip-repair': interval('cluster-ip-repair', 'checks cluster IPs'),
      'node-port-repair': interval('node-port-repair', 'checks node ports'),
    }),
    'Seconds from one pass to the next: multiples of the schedules, as a pass runs only when its schedule does.',
  ),
  maxEventsPerPass: described(z.int(), 'Events that one pass writes before it sums up the rest.', {
    minimum: 0,
    maximum: 10_000,
  }),
  callerKeys: z.exactOptional(
    described(
      z.array(described(text, 'SHA-256 of a key, in hex.', { pattern: '^[0-9a-f]{64}$' })),
      'Callers of the functions allocate and deregister, each by the SHA-256 of its key. Default: every caller that IAM lets invoke them. An empty list: none.',
      { uniqueItems: true },
    ),
  ),
});

export type ShapedSpec = z.infer<typeof specShape>;
