import * as z from 'zod/mini';
import { LEASE_INTERVALS, SCHEDULE_SECONDS } from '../cluster/cluster-spec.ts';
import { isRecord } from '../cluster/values.ts';
import { SERVER_PATTERN } from './kubeconfig-rules.ts';
import { SPEC_DEFAULTS, specShape } from './spec-shape.ts';

/** What editors show of one field: its words, and the keywords of JSON Schema that the shape does not have. */
interface SpecField {
  readonly description: string;
  readonly [keyword: string]: unknown;
}

const DAY_SECONDS = 86_400;
const PORT = { minimum: 1, maximum: 65_535 };
const LABEL = { pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$', maxLength: 63 };
const PORT_NAME = 'Name of the port: a-z, 0-9 and hyphens inside, at most 63 of them. Not https, and each name once.';

function interval(seconds: number, what: string): SpecField {
  return {
    description: `Seconds from one pass to the next, of the loop that ${what}. A multiple of ${seconds}, at most ${DAY_SECONDS} (a day).`,
    minimum: seconds,
    maximum: DAY_SECONDS,
    multipleOf: seconds,
  };
}

/**
 * By its path, each field of the cluster spec (docs/cluster-spec.md). Nothing that is deployed imports it: the rules
 * themselves are in this folder's `...-rules.ts`, and what a rule requires of two fields at once is described here in words.
 */
const SPEC_FIELDS: Readonly<Record<string, SpecField>> = {
  name: {
    description:
      'Key of everything that is kept about the cluster: a-z, 0-9 and hyphens, 1 to 63 of them. Another name is another cluster.',
    pattern: '^[a-z0-9-]{1,63}$',
    examples: ['prod-eu-1'],
  },
  mode: {
    description: 'observe: passes only report what they would write. enforce: they write. There is no default.',
  },
  allocator: {
    description:
      "What allocates cluster IPs and node ports. apiserver: the cluster's own API servers, and passes audit what Services claim. table: this project's table, for API servers whose Service storage allocates through it.",
  },
  kubeconfig: {
    description:
      'How the loops reach the cluster: exactly one of secretsManager, ssm, webIdentity and file. docs/kubeconfig-secret.md explains how to make each.',
    oneOf: [
      { required: ['secretsManager'] },
      { required: ['ssm'] },
      { required: ['file'], properties: { roleArn: false } },
      { required: ['webIdentity'], properties: { roleArn: false, context: false } },
    ],
  },
  'kubeconfig.file': {
    description: "A kubeconfig in a file: beside the functions' code, or on your machine.",
    examples: ['./prod-eu-1.kubeconfig'],
  },
  'kubeconfig.secretsManager': {
    description:
      'A kubeconfig in a secret of AWS Secrets Manager: a name in the region and account of the functions, or an ARN.',
    examples: ['kube-bootstrap-controller/dev/prod-eu-1'],
  },
  'kubeconfig.ssm': {
    description: 'A kubeconfig in a parameter of AWS Systems Manager, a SecureString: a name, or an ARN.',
    examples: ['/kube-bootstrap-controller/dev/prod-eu-1'],
  },
  'kubeconfig.webIdentity': {
    description: 'An API server that accepts tokens of AWS STS: no kubeconfig and no token is stored.',
  },
  'kubeconfig.webIdentity.server': {
    description: 'The https URL of the API server, which is also the audience of the tokens.',
    pattern: SERVER_PATTERN,
    examples: ['https://203.0.113.10:6443'],
  },
  'kubeconfig.webIdentity.certificateAuthorityData': {
    description: 'The certificate-authority-data of a kubeconfig. Default: the authorities that Node.js trusts.',
  },
  'kubeconfig.roleArn': {
    description:
      "The role to read secret or parameter as, when it is another account's: one that trusts the functions. Not beside file.",
    pattern: '^arn:aws[\\w-]*:iam::\\d{12}:role/',
    examples: ['arn:aws:iam::123456789012:role/read-kubeconfigs'],
  },
  'kubeconfig.context': { description: 'Which context of the kubeconfig. Default: its current context.' },
  apiServers: {
    description:
      'API servers that may be published as endpoints of the kubernetes Service. At least one, unless endpoints.reconciler is none; each once.',
  },
  'apiServers[]': {
    description: 'One API server by its address, or several by a host name.',
    oneOf: [
      { required: ['address'], properties: { host: false } },
      { required: ['host'], properties: { address: false, kind: { const: 'shared' } } },
    ],
  },
  'apiServers[].address': {
    description:
      "The address to publish, which clients in the cluster reach. Not unspecified, loopback, link-local or multicast; of the family of the first service range, unless the reconciler is none. auto is for runs on the API server's own host alone.",
    examples: ['203.0.113.10', '2001:db8::10'],
  },
  'apiServers[].host': {
    description:
      'A DNS name whose every A and AAAA record is published, up to 32. No scheme, no port; always of kind shared.',
    maxLength: 253,
    examples: ['api.prod-eu-1.example.com'],
  },
  'apiServers[].kind': {
    description:
      'server: one API server. shared: something in front of several, such as a load balancer. Default: server for an address, shared for a host.',
  },
  'apiServers[].probe': { description: 'How it is probed.', not: { required: ['url', 'path'] } },
  'apiServers[].probe.url': {
    description:
      'The URL to probe instead of https://<address>:<service.securePort><path>: a whole http or https URL without a credential. Not beside path.',
    examples: ['https://10.20.0.11:6443/readyz'],
  },
  'apiServers[].probe.path': {
    description: 'Path to probe. Begins with a slash. Not beside url.',
    default: '/readyz',
    pattern: '^/[^\\s#]*$',
  },
  'apiServers[].probe.serverName': {
    description: 'TLS server name, when the certificate does not carry the address.',
    examples: ['kubernetes'],
  },
  'apiServers[].probe.authenticate': { description: "Send the kubeconfig's credential. Never over http." },
  serviceClusterIPRange: {
    description:
      "The API servers' --service-cluster-ip-range: one CIDR, or two of different families, in one text with a comma and no space between, or as a list. The first has 8 addresses or more. With allocator table at most 20 host bits each.",
    anyOf: [
      { type: 'string', description: 'One CIDR, or two with a comma and no space between.' },
      { type: 'array', description: 'One CIDR, or two.', items: { type: 'string' }, minItems: 1, maxItems: 2 },
    ],
    examples: ['10.0.0.0/16', '10.0.0.0/16,fd00:10::/112', ['10.0.0.0/16', 'fd00:10::/112']],
  },
  serviceNodePortRange: {
    description: "The API servers' --service-node-port-range: A-B, A+N (A and the N ports after it), or one port.",
    anyOf: [
      { type: 'string', description: 'A-B, A+N, or one port.' },
      { type: 'integer', description: 'One port.', minimum: 0, maximum: 65_535 },
    ],
    examples: ['30000-32767', '30000+2767'],
  },
  endpoints: { description: 'How the endpoints of the kubernetes Service are kept.' },
  'endpoints.reconciler': {
    description:
      'lease: publish API servers with a valid lease. master-count: publish up to a number. none: publish nothing, and only keep the Service.',
  },
  'endpoints.masterCount': {
    description: 'For reconciler master-count: how many API servers there are. No less than the entries of apiServers.',
    minimum: 1,
  },
  'endpoints.leaseSeconds': {
    description: `How long a lease is valid after a successful probe. At most a day, and at least ${LEASE_INTERVALS} times intervalSeconds.kubernetes-service. Ignored with reconciler none.`,
  },
  'endpoints.reconcilePorts': {
    description: "Correct wrong ports on every pass. The original's periodic pass never does: false.",
  },
  'endpoints.extraPorts': { description: 'Ports to publish besides https. Default: none.' },
  'endpoints.extraPorts[].name': { description: PORT_NAME, ...LABEL, not: { const: 'https' } },
  'endpoints.extraPorts[].protocol': { description: 'Protocol of the port.' },
  'endpoints.extraPorts[].port': { description: 'The port that the API servers serve.', ...PORT },
  service: { description: 'The Service default/kubernetes.' },
  'service.port': { description: 'Port of the Service.', ...PORT },
  'service.securePort': { description: "The API servers' port, where the Service leads.", ...PORT },
  'service.nodePort': {
    description:
      '0: the Service is of type ClusterIP. Else it is of type NodePort, on this port of serviceNodePortRange.',
    minimum: 0,
    maximum: 65_535,
  },
  'service.extraPorts': {
    description: 'More ports of the Service. No port and no node port twice for one protocol. Default: none.',
  },
  'service.extraPorts[].name': { description: PORT_NAME, ...LABEL, not: { const: 'https' } },
  'service.extraPorts[].protocol': { description: 'Protocol of the port.' },
  'service.extraPorts[].port': { description: 'Port of the Service.', ...PORT },
  'service.extraPorts[].targetPort': { description: 'Where it leads. Default: the same as port.', ...PORT },
  'service.extraPorts[].nodePort': {
    description: 'A port of serviceNodePortRange, only when service.nodePort is not 0.',
    ...PORT,
  },
  'service.reconcile': {
    description: 'Correct type and ports of the Service when they were changed. The original never does.',
  },
  repair: { description: 'What the repair of cluster IPs corrects.' },
  'repair.ipAddresses': {
    description:
      'With allocator apiserver: correct IPAddress objects, for clusters whose API servers run without their own repair. Otherwise passes only report them.',
  },
  systemNamespaces: {
    description: 'Namespaces that are created when they are missing, in this order. May be empty; each once.',
    uniqueItems: true,
  },
  'systemNamespaces[]': { description: 'Name of a namespace.', ...LABEL },
  intervalSeconds: {
    description:
      'Seconds from one pass to the next: multiples of the schedules, as a pass runs only when its schedule does.',
  },
  'intervalSeconds.system-namespaces': interval(SCHEDULE_SECONDS['system-namespaces'], 'creates missing namespaces'),
  'intervalSeconds.kubernetes-service': interval(
    SCHEDULE_SECONDS['kubernetes-service'],
    'keeps the kubernetes Service and its endpoints',
  ),
  'intervalSeconds.cluster-ip-repair': interval(SCHEDULE_SECONDS['cluster-ip-repair'], 'checks cluster IPs'),
  'intervalSeconds.node-port-repair': interval(SCHEDULE_SECONDS['node-port-repair'], 'checks node ports'),
  maxEventsPerPass: {
    description: 'Events that one pass writes before it sums up the rest.',
    minimum: 0,
    maximum: 10_000,
  },
  callerKeys: {
    description:
      'Callers of the functions allocate and deregister, each by the SHA-256 of its key. Default: every caller that IAM lets invoke them. An empty list: none.',
    uniqueItems: true,
  },
  'callerKeys[]': { description: 'SHA-256 of a key, in hex.', pattern: '^[0-9a-f]{64}$' },
};

export type JsonSchema = Readonly<Record<string, unknown>>;

const HEAD = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Cluster spec of kube-bootstrap-controller',
  description:
    'A control plane and how it is maintained. docs/cluster-spec.md explains each field. Rules about two fields at once are checked when the spec is read.',
};

/** Where nothing is published, no API server is required and leases are ignored. */
const SERVERS_REQUIRED = {
  if: {
    properties: { endpoints: { properties: { reconciler: { const: 'none' } }, required: ['reconciler'] } },
    required: ['endpoints'],
  },
  else: {
    required: ['apiServers'],
    properties: {
      apiServers: { minItems: 1 },
      endpoints: { properties: { leaseSeconds: { minimum: 1, maximum: 86_400 } } },
    },
  },
};

/**
 * The JSON Schema (draft 2020-12) of a cluster spec as people write it, with defaults left out. Every spec that
 * `validateClusterSpec` takes is good by it. For editors: it is less strict than the rules, and decides nothing.
 */
export function specJsonSchema(): JsonSchema {
  const shape = z.toJSONSchema(specShape, { io: 'input' });
  const { $schema: _, ...written } = asWritten(shape, '', SPEC_DEFAULTS);
  return { ...HEAD, ...written, ...SERVERS_REQUIRED };
}

/** The part of the shape at `path`, with the words for it, and with what has a default no longer required. */
function asWritten(shape: JsonSchema, path: string, standard: unknown): JsonSchema {
  const { properties, required, items, ...rest } = withoutBounds(shape);
  const words = SPEC_FIELDS[path];
  const fields = mapping(properties);
  const item = mapping(items);
  const defaults = mapping(standard) ?? {};
  const needed = listed(required).filter((name) => !(String(name) in defaults));
  return {
    ...(words && { description: words.description }),
    ...rest,
    ...(isWorthSaying(standard) && { default: standard }),
    ...words,
    ...(fields && { properties: eachField(fields, path, defaults) }),
    ...(needed.length > 0 && { required: needed }),
    ...(item && { items: asWritten(item, `${path}[]`, undefined) }),
  };
}

/** Mappings have the defaults of their fields, and an empty list is what leaving it out means. */
function isWorthSaying(standard: unknown): boolean {
  return (
    standard !== undefined && mapping(standard) === undefined && !(Array.isArray(standard) && standard.length === 0)
  );
}

function eachField(fields: JsonSchema, path: string, defaults: JsonSchema): JsonSchema {
  const around = path === '' ? '' : `${path}.`;
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      asWritten(mapping(field) ?? {}, `${around}${name}`, defaults[name]),
    ]),
  );
}

/** Without the bounds of all integers, which are noise. */
function withoutBounds({ minimum, maximum, ...schema }: JsonSchema): JsonSchema {
  return {
    ...schema,
    ...(minimum !== undefined && minimum !== Number.MIN_SAFE_INTEGER && { minimum }),
    ...(maximum !== undefined && maximum !== Number.MAX_SAFE_INTEGER && { maximum }),
  };
}

function listed(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function mapping(value: unknown): JsonSchema | undefined {
  return isRecord(value) ? value : undefined;
}
