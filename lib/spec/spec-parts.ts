import * as z from 'zod/mini';
import { type Address, canonicalAddress } from '../allocator/ip-address.ts';
import { type Network, networkContains, parseCidr } from '../allocator/network.ts';
import { type PortInterval, parsePortInterval, portIntervalText } from '../allocator/port-range.ts';
import { isRefused, type Refusal } from '../allocator/refusal.ts';
import { defined } from '../util/values.ts';
import { described, errorText, integer, optional, patterned, text, withDefault } from './shapes.ts';

/** Upstream's default ranges. An empty text in a spec also means the default. */
export const DEFAULT_CLUSTER_IP_RANGE = '10.0.0.0/24';
const DEFAULT_NODE_PORT_RANGE = '30000-32767';

export const port = integer(1, 65_535, '{} is not a valid port: write a number from 1 to 65535');
export const DNS_LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

export function label(what: string): z.ZodMiniString<string> {
  return patterned(DNS_LABEL, `{} is not a valid ${what}: use a-z, 0-9 and hyphens inside, at most 63 of them`);
}

/** Returns the shape of a part of a spec: users write `written`, `complete` converts it, and the table stores `stored`. */
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
      // The URL is also an entry of a comma-separated stack parameter, so it contains no comma.
      patterned(
        /^https:\/\/[^\s,@?#]{1,500}$/,
        '{} is not an https URL of an API server: write one such as https://203.0.113.10:6443',
      ),
      'The API server, which accepts tokens of AWS STS: an https URL without a credential, a query or a comma, not of AWS STS, and not a loopback, link-local or metadata address. Its text is the audience of the tokens.',
      { examples: ['https://203.0.113.10:6443'] },
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
/** Names that `CreateSecret` accepts, and ARNs of secrets. */
const secretsManager = described(
  patterned(
    /^([\w/+=.@-]{1,512}|arn:aws[\w-]*:secretsmanager:[\w-]+:\d{12}:secret:[\w/+=.@-]+)$/,
    '{} is not a valid name of a secret: write one such as kube-bootstrap-controller/dev/prod-eu-1, or the ARN of the secret',
  ),
  'A kubeconfig in a secret of AWS Secrets Manager: a name in the region and account of the functions, or an ARN.',
  { examples: ['kube-bootstrap-controller/dev/prod-eu-1'] },
);
/** Names that `PutParameter` accepts, and ARNs of parameters. */
const ssm = described(
  patterned(
    /^([\w./-]{1,1011}|arn:aws[\w-]*:ssm:[\w-]+:\d{12}:parameter\/[\w./-]+)$/,
    '{} is not a valid name of a parameter: write one such as /kube-bootstrap-controller/dev/prod-eu-1, or the ARN of the parameter',
  ),
  'A kubeconfig in a parameter of AWS Systems Manager, a SecureString: a name, or an ARN.',
  { examples: ['/kube-bootstrap-controller/dev/prod-eu-1'] },
);
const roleArn = optional(
  patterned(
    /^arn:aws[\w-]*:iam::\d{12}:role\/[\w+=,.@/-]+$/,
    '{} is not the ARN of a role: write one such as arn:aws:iam::123456789012:role/read-kubeconfigs',
  ),
  "The role to assume to read the secret or parameter of another account: one that trusts the functions. Only beside secretsManager or ssm. Default: the function's own.",
  { examples: ['arn:aws:iam::123456789012:role/read-kubeconfigs'] },
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

const path = described(
  patterned(/^\/[^\s#]*$/, '{} is not a path: write a path such as /readyz'),
  'The path to request. Begins with a slash. Not beside url.',
  { default: '/readyz' },
);
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
  patterned(
    /^arn:aws[\w-]*:elasticloadbalancing:[a-z0-9-]+:\d{12}:targetgroup\/[\w-]{1,32}\/[0-9a-f]{1,32}$/,
    '{} is not the ARN of a target group: copy it from: aws elbv2 describe-target-groups',
  ),
  'A target group of Elastic Load Balancing whose targets are addresses: those that are healthy are published, up to 32.',
  { examples: ['arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/prod-eu-1/0123456789abcdef'] },
);
const serviceRef = optional(
  z.strictObject({
    namespace: described(label('name'), 'The namespace of a Service of a management cluster.'),
    name: described(
      label('name'),
      'The name of that Service. The addresses of its load balancer are published; of its ready endpoints if it has none.',
    ),
    kubeconfig,
  }),
  'A Service of a management cluster, which leads to the API servers.',
);
export const SOURCES = ['address', 'host', 'targetGroupArn', 'serviceRef'] as const;

interface NamedEntry {
  readonly address?: string | undefined;
  readonly host?: string | undefined;
  readonly targetGroupArn?: string | undefined;
  readonly serviceRef?: { readonly namespace?: string | undefined; readonly name?: string | undefined } | undefined;
}

/** Returns the name of an entry: its address, host name or source. Two entries with the same name are duplicates. */
export function nameOfEntry({ address: own, host: name, targetGroupArn: arn, serviceRef: ref }: NamedEntry) {
  if (own !== undefined) return canonicalAddress(own) ?? own;
  if (ref === undefined) return arn ?? name?.toLowerCase();
  return ref.namespace && ref.name && `service ${ref.namespace}/${ref.name}`;
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
      oneOf: SOURCES.map((source) => ({ required: [source] })),
      anyOf: [{ required: ['address'] }, { properties: { kind: { const: 'shared' } } }],
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
  label('port name'),
  'The name of the port: a-z, 0-9 and hyphens inside, at most 63 of them. Not https, and each name once.',
  { not: { const: 'https' } },
);
const protocol = withDefault('TCP', z.enum(['TCP', 'UDP', 'SCTP']), 'The protocol of the port.');

export const endpointPort = z.strictObject({
  name,
  protocol,
  port: described(port, 'The port that the API servers serve.'),
});

const targetPort = described(port, 'The port of the API servers. Default: the same as port.');
const writtenPort = z.strictObject({
  name,
  protocol,
  port: described(port, 'The port of the Service.'),
  targetPort: z.exactOptional(targetPort),
  nodePort: optional(port, 'A port of serviceNodePortRange, only if service.nodePort is not 0.'),
});
export const servicePort = completed(
  writtenPort,
  (written) => ({ ...written, targetPort: written.targetPort ?? written.port }),
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

/**
 * Returns the range that contains an address, if any. If the primary range is the default, returns `undefined`, because the API
 * servers may use another range.
 */
export function serviceRangeOf(address: Address, ranges: ServiceRangesText): Network | undefined {
  const { primary, secondary } = readServiceRanges(ranges);
  if (primary?.text === DEFAULT_CLUSTER_IP_RANGE) return undefined;
  return [primary, secondary].find((range) => range !== undefined && networkContains(range, address));
}

/** The ranges as canonical CIDR texts: the primary range, and optionally a secondary range of the other IP family. */
export const serviceRanges = completed(
  described(
    z.union(
      [
        described(z.string(), 'One CIDR, or two with a comma and no space between.'),
        described(z.array(z.string()), 'One CIDR, or two.', { minItems: 1, maxItems: 2 }),
      ],
      errorText('is {}: write a CIDR such as 10.0.0.0/24, or a list of two of different families'),
    ),
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
      z.union(
        [
          described(z.string(), 'A-B, A+N, or one port.'),
          described(z.int(), 'One port.', { minimum: 0, maximum: 65_535 }),
        ],
        errorText('is {}: write a range such as 30000-32767'),
      ),
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
