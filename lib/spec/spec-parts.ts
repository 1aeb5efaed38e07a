import * as z from 'zod/mini';
import { type Address, canonicalAddress } from '../allocator/ip-address.ts';
import { type Network, networkContains, parseCidr } from '../allocator/network.ts';
import { type PortInterval, parsePortInterval, portIntervalText } from '../allocator/port-range.ts';
import { isRefused, type Refusal } from '../allocator/refusal.ts';
import { defined } from '../util/values.ts';
import { described, optional, withDefault } from './shapes.ts';

/** Upstream's default ranges. An empty text in a spec also means the default. */
export const DEFAULT_CLUSTER_IP_RANGE = '10.0.0.0/24';
const DEFAULT_NODE_PORT_RANGE = '30000-32767';

export const PORT = { minimum: 1, maximum: 65_535 };
export const DNS_LABEL = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;
export const LABEL = { pattern: DNS_LABEL.source, maxLength: 63 };
/**
 * The URL of an API server that accepts tokens of AWS STS. The URL is the audience of the tokens. The URL is also an
 * entry of a comma-separated stack parameter, so it contains no comma.
 */
const SERVER_PATTERN = '^https://[^\\s,@?#]{1,500}$';
export const SERVER_URL = new RegExp(SERVER_PATTERN);

const TARGET_GROUP_PATTERN =
  '^arn:aws[\\w-]*:elasticloadbalancing:[a-z0-9-]+:\\d{12}:targetgroup/[\\w-]{1,32}/[0-9a-f]{1,32}$';
export const TARGET_GROUP = new RegExp(TARGET_GROUP_PATTERN);

const PATH_PATTERN = '^/[^\\s#]*$';
export const PROBE_PATH = new RegExp(PATH_PATTERN);

export const text = z.string().check(z.minLength(1));

/** Returns the shape of a part of a spec: users write it as `written`, `complete` converts it, and the table has `stored`. */
function completed<Written extends z.ZodMiniType, Stored extends z.ZodMiniType>(
  written: Written,
  complete: (value: z.output<Written>) => unknown,
  stored: Stored,
): z.ZodMiniPipe<z.ZodMiniType<unknown, z.input<Written>>, Stored> {
  return z.pipe<z.ZodMiniType<unknown, z.input<Written>>, Stored>(z.pipe(written, z.transform(complete)), stored);
}

export const webIdentity = described(
  z.strictObject({
    server: described(
      text,
      'The API server, which accepts tokens of AWS STS: an https URL without a credential, a query or a comma, not of AWS STS, and not a loopback, link-local or metadata address. Its text is the audience of the tokens.',
      { pattern: SERVER_PATTERN, examples: ['https://203.0.113.10:6443'] },
    ),
    certificateAuthorityData: optional(
      text,
      'The certificate-authority-data of a kubeconfig: PEM certificates in base64. Default: the authorities that Node.js trusts.',
    ),
  }),
  'An API server that accepts tokens of AWS STS: no kubeconfig and no token is stored.',
);

const file = described(text, "A kubeconfig in a file: beside the functions' code, or on your machine.", {
  examples: ['./prod-eu-1.kubeconfig'],
});
const secretsManager = described(
  text,
  'A kubeconfig in a secret of AWS Secrets Manager: a name in the region and account of the functions, or an ARN.',
  { examples: ['kube-bootstrap-controller/dev/prod-eu-1'] },
);
const ssm = described(text, 'A kubeconfig in a parameter of AWS Systems Manager, a SecureString: a name, or an ARN.', {
  examples: ['/kube-bootstrap-controller/dev/prod-eu-1'],
});
const roleArn = optional(
  text,
  "The role to assume to read the secret or parameter of another account: one that trusts the functions. Only beside secretsManager or ssm. Default: the function's own.",
  { pattern: '^arn:aws[\\w-]*:iam::\\d{12}:role/', examples: ['arn:aws:iam::123456789012:role/read-kubeconfigs'] },
);
const context = optional(
  text,
  'The context of the kubeconfig to use. Not beside webIdentity. Default: its current context.',
);

export const kubeconfig = completed(
  described(
    z.strictObject({
      secretsManager: z.exactOptional(secretsManager),
      ssm: z.exactOptional(ssm),
      webIdentity: z.exactOptional(webIdentity),
      file: z.exactOptional(file),
      roleArn,
      context,
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
  ),
  (written) => written,
  z.union([
    z.strictObject({ secretsManager, roleArn, context }),
    z.strictObject({ ssm, roleArn, context }),
    z.strictObject({ webIdentity }),
    z.strictObject({ file, context }),
  ]),
);

const path = described(text, 'The path to request. Begins with a slash. Not beside url.', {
  default: '/readyz',
  pattern: PATH_PATTERN,
});
const probe = z.strictObject({
  url: optional(
    text,
    'The URL to request instead of https://<address>:<service.securePort><path>: a whole URL without a credential, for the functions not to a loopback, link-local or metadata address. Not beside path.',
    { examples: ['https://10.20.0.11:6443/readyz'] },
  ),
  path: z.exactOptional(path),
  serverName: optional(text, 'The TLS server name, if the certificate does not contain the address.', {
    examples: ['kubernetes'],
  }),
  authenticate: withDefault(
    false,
    z.boolean(),
    "Send the kubeconfig's credential. Never over http; with url only to a host of this spec or of the kubeconfig's server; with kubeconfig.webIdentity only to the scheme, host and port of its server.",
  ),
});
const storedProbe = z.extend(probe, { path });

const kind = described(
  z.enum(['server', 'shared']),
  'server: one API server. shared: something in front of several, such as a load balancer. Default: server for an address; the others are always shared.',
);
const address = described(
  text,
  'The address to publish. Each entry has this, host, targetGroupArn or serviceRef. Not unspecified, loopback, link-local or multicast; of the family of the first service range, unless the reconciler is none or service.ipFamilyPolicy is PreferDualStack.',
  { examples: ['203.0.113.10', '2001:db8::10'] },
);
const host = described(
  text,
  'A DNS name whose every A and AAAA record is published, up to 32. No scheme, no port; always of kind shared.',
  { maxLength: 253, examples: ['api.prod-eu-1.example.com'] },
);

const targetGroupArn = optional(
  text,
  'A target group of Elastic Load Balancing whose targets are addresses: those that are healthy are published, up to 32.',
  {
    pattern: TARGET_GROUP_PATTERN,
    examples: ['arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/prod-eu-1/0123456789abcdef'],
  },
);
const serviceRef = optional(
  z.strictObject({
    namespace: described(text, 'The namespace of a Service of a management cluster.', LABEL),
    name: described(
      text,
      'The name of that Service. The addresses of its load balancer are published; of its ready endpoints if it has none.',
      LABEL,
    ),
    kubeconfig,
  }),
  'A Service of a management cluster, which leads to the API servers.',
);
const SHARED = { kind: { const: 'shared' } };

/**
 * Returns the part of a JSON Schema that forbids the given fields. An entry has only one source of addresses, so its schema
 * forbids the fields of the other sources.
 */
function without(...fields: readonly string[]) {
  return Object.fromEntries(fields.map((field) => [field, false]));
}

interface NamedEntry {
  readonly address?: string | undefined;
  readonly host?: string | undefined;
  readonly targetGroupArn?: string | undefined;
  readonly serviceRef?: { readonly namespace?: string | undefined; readonly name?: string | undefined } | undefined;
}

/** Returns what identifies an entry: its address, host name or source. Two entries with the same name are duplicates. */
export function nameOfEntry({ address: own, host: name, targetGroupArn: arn, serviceRef: ref }: NamedEntry) {
  if (own !== undefined) return canonicalAddress(own) ?? own;
  return ref === undefined ? (arn ?? name?.toLowerCase()) : `service ${ref.namespace}/${ref.name}`;
}

/** An entry of `apiServers`. An address is stored as canonical text. Every other entry has a `host`, the name of its source. */
export const apiServer = completed(
  described(
    z.strictObject({
      address: z.exactOptional(address),
      host: z.exactOptional(host),
      targetGroupArn,
      serviceRef,
      kind: z.exactOptional(kind),
      probe: withDefault({}, probe, 'How it is probed.', { not: { required: ['url', 'path'] } }),
    }),
    'One API server by its address, or several by a host name, a target group or a Service of a management cluster.',
    {
      oneOf: [
        { required: ['address'], properties: without('host', 'targetGroupArn', 'serviceRef') },
        { required: ['host'], properties: { ...without('address', 'targetGroupArn', 'serviceRef'), ...SHARED } },
        { required: ['targetGroupArn'], properties: { ...without('address', 'host', 'serviceRef'), ...SHARED } },
        { required: ['serviceRef'], properties: { ...without('address', 'host', 'targetGroupArn'), ...SHARED } },
      ],
    },
  ),
  (server) => {
    const complete = { ...server.probe, path: server.probe.path ?? '/readyz' };
    const name = nameOfEntry(server) ?? '';
    return server.address === undefined
      ? { ...server, host: name, kind: 'shared' as const, probe: complete }
      : { address: name, kind: server.kind ?? ('server' as const), probe: complete };
  },
  z.union(
    [
      z.strictObject({ address, kind, probe: storedProbe }),
      z.strictObject({ host, targetGroupArn, serviceRef, kind: z.literal('shared'), probe: storedProbe }),
    ],
    'is neither an address nor a shared host, with its probe',
  ),
);

const name = described(
  text,
  'The name of the port: a-z, 0-9 and hyphens inside, at most 63 of them. Not https, and each name once.',
  { ...LABEL, not: { const: 'https' } },
);
const protocol = withDefault('TCP', z.enum(['TCP', 'UDP', 'SCTP']), 'The protocol of the port.');

export const endpointPort = z.strictObject({
  name,
  protocol,
  port: described(z.int(), 'The port that the API servers serve.', PORT),
});

const targetPort = described(z.int(), 'The port of the API servers. Default: the same as port.', PORT);
const writtenPort = z.strictObject({
  name,
  protocol,
  port: described(z.int(), 'The port of the Service.', PORT),
  targetPort: z.exactOptional(targetPort),
  nodePort: optional(z.int(), 'A port of serviceNodePortRange, only if service.nodePort is not 0.', PORT),
});
export const servicePort = completed(
  writtenPort,
  (port) => ({ ...port, targetPort: port.targetPort ?? port.port }),
  z.extend(writtenPort, { targetPort }),
);

export type ServiceRangesText = string | readonly (string | undefined)[];

/** Splits a text at its commas, as API servers do with `--service-cluster-ip-range`. Does not trim the CIDRs. */
export function serviceRangeEntries(ranges: ServiceRangesText): readonly (string | undefined)[] {
  if (typeof ranges !== 'string') return ranges;
  return (ranges === '' ? DEFAULT_CLUSTER_IP_RANGE : ranges).split(',');
}

export function readServiceRanges(ranges: ServiceRangesText): { primary?: Network; secondary?: Network } {
  const [primary, secondary] = serviceRangeEntries(ranges).map((entry = '') => parseCidr(entry));
  return defined({ primary, secondary });
}

/** Returns the range that contains an address; `undefined` with the default range, because the API servers may have another. */
export function serviceRangeOf(address: Address, ranges: ServiceRangesText): Network | undefined {
  const { primary, secondary } = readServiceRanges(ranges);
  if (primary?.text === DEFAULT_CLUSTER_IP_RANGE) return undefined;
  return [primary, secondary].find((range) => range !== undefined && networkContains(range, address));
}

/** The ranges as canonical CIDR texts: the primary range, and optionally a secondary range of the other IP family. */
export const serviceRanges = completed(
  described(
    z.union([
      described(z.string(), 'One CIDR, or two with a comma and no space between.'),
      described(z.array(z.string()), 'One CIDR, or two.', { minItems: 1, maxItems: 2 }),
    ]),
    "The API servers' --service-cluster-ip-range: one CIDR, or two of different families, as a list or in one text with a comma and no space between. The first has 8 addresses or more. With allocator table at most 20 host bits each.",
    { examples: ['10.0.0.0/16', '10.0.0.0/16,fd00:10::/112', ['10.0.0.0/16', 'fd00:10::/112']] },
  ),
  (ranges): [string] | [string, string] => {
    const { primary, secondary } = readServiceRanges(ranges);
    return secondary === undefined ? [primary?.text ?? ''] : [primary?.text ?? '', secondary.text];
  },
  z.union([z.tuple([z.string()]), z.tuple([z.string(), z.string()])], 'is not one range or two'),
);

/** Parses `30000-32767`, `30000+2767` or one port. An empty range means the default, as in `--service-node-port-range`. */
export function readNodePortRange(ports: string | number): PortInterval | Refusal {
  const range = parsePortInterval(String(ports));
  return isRefused(range) || range.size > 0 ? range : parsePortInterval(DEFAULT_NODE_PORT_RANGE);
}

export const serviceNodePortRange = z.prefault(
  completed(
    described(
      z.union([
        described(z.string(), 'A-B, A+N, or one port.'),
        described(z.int(), 'One port.', { minimum: 0, maximum: 65_535 }),
      ]),
      "The API servers' --service-node-port-range: A-B, A+N (A and the N ports after it), or one port.",
      { examples: ['30000-32767', '30000+2767'] },
    ),
    (ports) => {
      const range = readNodePortRange(ports);
      return isRefused(range) ? String(ports) : portIntervalText(range);
    },
    z.string(),
  ),
  DEFAULT_NODE_PORT_RANGE,
);
