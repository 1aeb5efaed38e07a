import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { validateClusterSpec } from '../../../cli/spec/parse-cluster-spec.ts';
import { type Loop, SCHEDULE_SECONDS, writtenSpecShape } from '../../../lib/spec/cluster-spec.ts';
import { specIn } from '../../support/a-cluster-spec.ts';
import { aSpec, faultsOf, minimal } from './spec-support.ts';

const TARGET_GROUP = 'arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/prod/0123456789abcdef';
const SERVICE_REF = { namespace: 'tenants', name: 'prod', kubeconfig: { secretsManager: 'management' } };
const [IPV4_RANGE, IPV6_RANGE] = ['192.168.0.0/24', 'fd00::/112'];
const IPV6 = { serviceClusterIPRange: IPV6_RANGE };
const TWO = [{ address: '203.0.113.10' }, { address: '203.0.113.11' }];
const at = (address: string) => ({ apiServers: [{ address }] });
const reconciler = (name: string) => ({ endpoints: { reconciler: name } });

const outside = (range: string, port: number) => `kubernetes service node port range ${range} doesn't contain ${port}`;

const LABEL = 'use a-z, 0-9 and hyphens inside, at most 63 of them';
const NO_NAME = 'is not a valid cluster name: use a-z, 0-9 and hyphens, at most 63 of them';
const NO_PORT = 'is not a valid port: write a number from 1 to 65535';

type Row = [fields: object, ...faults: string[]];

/** Defines a test for each row, which expects that the spec with these fields has exactly these faults. */
function testFaults(...rows: readonly Row[]): void {
  test.each(rows.map(([fields, ...faults]) => [fields, faults] as const))(
    'a spec with %j has the faults %j',
    (fields, faults) => {
      expect(faultsOf(aSpec(fields as Record<string, unknown>))).toEqual(faults);
    },
  );
}

const ofHost = (stored: object) => ({
  apiServers: [{ kind: 'shared', probe: { path: '/readyz', authenticate: false }, ...stored }],
});
const [OF_GROUP, OF_SERVICE] = [{ targetGroupArn: TARGET_GROUP }, { serviceRef: SERVICE_REF }];
const SHARED = { address: '203.0.113.10', kind: 'shared' };
const PROBE_BY_URL = { url: 'https://10.1.0.4:6443/livez', serverName: 'kubernetes', authenticate: true };
const RANGES = ['10.0.0.0/16', 'fd00::/112'];
const ports = (serviceNodePortRange: unknown) => ({ serviceNodePortRange });
const extra = (port: object) => ({ service: { extraPorts: [{ name: 'metrics', port: 9443, ...port }] } });
test.each<[string, object, object]>([
  ['an address with leading zeros', at('010.001.000.9'), at('10.1.0.9')],
  ['an IPv4-mapped address', at('::ffff:10.0.0.9'), at('10.0.0.9')],
  ['an IPv6 address in capitals', { ...at('2001:DB8:0::9'), ...IPV6 }, at('2001:db8::9')],
  ['a host name in capitals', { apiServers: [{ host: 'API.a.example' }] }, ofHost({ host: 'api.a.example' })],
  ['a target group', { apiServers: [OF_GROUP] }, ofHost({ ...OF_GROUP, host: TARGET_GROUP })],
  ['a Service', { apiServers: [OF_SERVICE] }, ofHost({ ...OF_SERVICE, host: 'service tenants/prod' })],
  ['ranges', { serviceClusterIPRange: ['10.0.0.9/16', 'FD00:0::/112'] }, { serviceClusterIPRanges: RANGES }],
  ['a number of node ports', ports(' 30000+999 '), ports('30000-30999')],
  [
    'the URL of a probe',
    { apiServers: [{ ...SHARED, probe: PROBE_BY_URL }] },
    { apiServers: [{ ...SHARED, probe: { ...PROBE_BY_URL, path: '/readyz' } }] },
  ],
  [
    'a probe of a Service',
    { apiServers: [{ ...OF_SERVICE, probe: { serverName: 'kubernetes' } }] },
    ofHost({ ...OF_SERVICE, probe: { path: '/readyz', serverName: 'kubernetes', authenticate: false } }),
  ],
  [
    'the path of a probe',
    { apiServers: [{ host: 'a.example', probe: { path: '/healthz?verbose' } }] },
    ofHost({ host: 'a.example', probe: { path: '/healthz?verbose', authenticate: false } }),
  ],
  ['an extra port', extra({}), extra({ protocol: 'TCP', targetPort: 9443 })],
  ['an empty node port range', ports(''), ports('30000-32767')],
  ['one node port as a number', ports(30080), ports('30080-30080')],
])('a cluster spec with %s is stored in canonical form', (_, fields, stored) => {
  expect(specIn(JSON.stringify({ ...minimal, ...fields }))).toMatchObject(stored);
});

testFaults(
  [{ name: '#clusters' }, `name: "#clusters" ${NO_NAME}`],
  [{ name: '' }, `name: is empty, which ${NO_NAME}`],
  [{ name: 'a'.repeat(64) }, `name: "${'a'.repeat(64)}" ${NO_NAME}`],
  [{ mode: 'dry-run' }, 'mode: is "dry-run"'],
  [{ endpoints: null }, 'endpoints: is empty'],
  [{ endpoints: { leaseSeconds: 1e300 } }, 'endpoints.leaseSeconds: is 1e+300'],
  [reconciler('etcd'), 'endpoints.reconciler: Reconciler not implemented: etcd'],
  [{ endpoints: { masterCount: 0 } }, 'endpoints.masterCount: 0 is not above 0: write the number of API servers'],
  [
    { endpoints: { reconciler: 'master-count' }, apiServers: TWO },
    'endpoints.masterCount: 1 is less than the 2 API servers in apiServers',
  ],
  [{ service: { port: 443.5 } }, 'service.port: is 443.5'],
  [{ service: { port: 65536 } }, `service.port: 65536 ${NO_PORT}`],
  [{ service: { securePort: 0 } }, `service.securePort: 0 ${NO_PORT}`],
  [{ maxEventsPerPass: -1 }, 'maxEventsPerPass: -1 is not a valid number of events: write a number from 0 to 10000'],
  [{ systemNamespaces: ['Kube'] }, `systemNamespaces[0]: "Kube" is not a valid namespace name: ${LABEL}`],
  [{ systemNamespaces: ['a', 'a'] }, 'systemNamespaces[1]: is the same as entry 0'],
  [
    { callerKeys: ['secret'] },
    'callerKeys[0]: is not a SHA-256 hash in hex: write 64 of 0-9 and a-f: printf %s KEY | sha256sum',
  ],
  [{ callerKeys: ['a'.repeat(64), 'a'.repeat(64)] }, 'callerKeys[1]: is the same as entry 0'],
  [{ serviceNodePortRange: 'many' }, 'serviceNodePortRange: "many" is not a range of ports'],
  [{ serviceNodePortRange: '200-100' }, 'serviceNodePortRange: end port cannot be less than start port: 200-100'],
  [{ serviceNodePortRange: '60-70000' }, 'serviceNodePortRange: the port range cannot be greater than 65535: 60-70000'],
);

test('each fault contains how to fix it', () => {
  const faulty = { mode: 'enforced', endpoints: { leaseSecond: 15, reconciler: 'x' }, foo: 1 };
  const result = validateClusterSpec(aSpec(faulty));
  expect('faults' in result && result.faults.map(({ path, fix }) => [path, fix])).toEqual(
    expect.arrayContaining([
      ['mode', 'write one of observe, enforce'],
      ['endpoints.leaseSecond', 'write leaseSeconds'],
      ['endpoints.reconciler', 'write one of lease, master-count, none'],
      ['foo', expect.stringMatching(/^the fields here are name, mode, /)],
    ]),
  );
});

const NO_KUBECONFIG = 'has neither file, secretsManager, ssm nor webIdentity';
const NO_GROUP = 'is not the ARN of a target group: copy it from: aws elbv2 describe-target-groups';
const ALWAYS_SHARED = 'an entry without an address is always shared: its addresses change';

const BAD_SERVICES = ['A b', 'C'].map((name) => ({ serviceRef: { ...SERVICE_REF, name } }));
const server = (fields: object, fault: string): Row => [{ apiServers: [fields] }, `apiServers[0]${fault}`];
const probe = (fields: object, fault: string) => server({ address: '10.0.0.1', probe: fields }, `.probe.${fault}`);
testFaults(
  server({ address: '10.0.0.1', host: 'a.example' }, ': has both address and host'),
  server({ host: 'a.example', serviceRef: SERVICE_REF }, ': has both host and serviceRef'),
  server({ targetGroupArn: 'prod' }, `.targetGroupArn: "prod" ${NO_GROUP}`),
  server({ targetGroupArn: TARGET_GROUP, kind: 'server' }, `.kind: ${ALWAYS_SHARED}`),
  [
    { apiServers: BAD_SERVICES },
    `apiServers[0].serviceRef.name: "A b" is not a valid name: ${LABEL}`,
    `apiServers[1].serviceRef.name: "C" is not a valid name: ${LABEL}`,
  ],
  server({ serviceRef: { ...SERVICE_REF, kubeconfig: {} } }, `.serviceRef.kubeconfig: ${NO_KUBECONFIG}`),
  server({ address: '10.0.0.256' }, '.address: "10.0.0.256" is not an IP address'),
  server({ address: 'fe80::1%eth0' }, '.address: "fe80::1%eth0" is not an IP address'),
  server({}, ': has neither an address, a host, a targetGroupArn nor a serviceRef'),
  server({ address: '127.0.0.1' }, '.address: may not be in the loopback range (127.0.0.0/8, ::1/128)'),
  server({ address: '0.0.0.0' }, '.address: may not be unspecified (0.0.0.0)'),
  server({ address: '169.254.1.1' }, '.address: may not be in the link-local range (169.254.0.0/16, fe80::/10)'),
  server({ address: 'ff02::1' }, '.address: may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)'),
  server({ address: '239.1.1.1' }, '.address: may not be a multicast address'),
  server({ host: '10.0.0.1' }, '.host: 10.0.0.1 is an address'),
  server({ host: 'a.example:6443' }, '.host: "a.example:6443" is not a valid host name'),
  server({ host: '10.0.0.256' }, '.host: "10.0.0.256" is not a valid host name'),
  server({ host: 'a.example', kind: 'server' }, `.kind: ${ALWAYS_SHARED}`),
  probe({ url: 'tcp://10.0.0.1:6443' }, 'url: "tcp://10.0.0.1:6443" is not an http or https URL'),
  probe({ url: '10.0.0.1:6443/readyz' }, 'url: "10.0.0.1:6443/readyz" is not an http or https URL'),
  probe({ url: 'http://a/', authenticate: true }, 'url: would send the credential of probe.authenticate unencrypted'),
  probe({ url: 'https://admin:s@10.0.0.1/' }, 'url: contains a credential, which would be stored and logged'),
  probe({ path: 'readyz' }, 'path: "readyz" is not a path: write a path such as /readyz'),
  probe({ url: 'https://10.0.0.1/readyz', path: '/livez' }, 'path: has no meaning beside probe.url'),
  // A probe over http:// without a credential is valid.
  [{ apiServers: [{ address: '10.0.0.1', probe: { url: 'http://10.0.0.1:8080/readyz' } }] }],
);

describe('API servers', () => {
  const twice = (first: object, second: object, name: string): Row => [
    { apiServers: [first, second] },
    `apiServers[1].${name}: apiServers[0] is the same`,
  ];
  const NO_SERVER = 'apiServers: is empty: without an API server the kubernetes Service has no endpoints';
  const ofFamily = (serviceClusterIPRange: string, address: string, name: string) => ({
    ...{ serviceClusterIPRange, ...at(address) },
    ...reconciler(name),
  });
  const mustMatch = (range: string, address: string) =>
    `apiServers[0].address: service IP family "${range}" must match public address family "${address}"`;
  const inRange = 'apiServers[0].address: is in the range of cluster IPs 10.96.0.0/16, which endpoints must not be in';
  testFaults(
    twice({ address: '10.0.0.1' }, { address: '010.0.0.1' }, 'address'),
    twice({ address: '10.0.0.1' }, { address: '::ffff:a00:1' }, 'address'),
    twice({ host: 'a.example' }, { host: 'A.EXAMPLE' }, 'host'),
    [{ apiServers: [], ...reconciler('lease') }, NO_SERVER],
    [{ apiServers: [], ...reconciler('master-count') }, NO_SERVER],
    [{ apiServers: [], endpoints: { reconciler: 'none', leaseSeconds: 1 } }],
    [ofFamily(IPV4_RANGE, '2001:db8::1', 'master-count'), mustMatch(IPV4_RANGE, '2001:db8::1')],
    [ofFamily(IPV6_RANGE, '2001:db8::1', 'lease')],
    [ofFamily(IPV6_RANGE, '192.168.1.1', 'lease'), mustMatch(IPV6_RANGE, '192.168.1.1')],
    [ofFamily(IPV4_RANGE, '2001:db8::1', 'none')],
    [ofFamily(`${IPV6_RANGE},${IPV4_RANGE}`, '192.168.1.1', 'lease'), mustMatch(IPV6_RANGE, '192.168.1.1')],
    [{ apiServers: [{ host: 'a.example' }], ...IPV6 }],
    [{ ...at('10.96.0.1'), serviceClusterIPRange: '10.96.0.0/16' }, inRange],
    [{ ...at('::ffff:10.96.0.9'), serviceClusterIPRange: 'fd00::/112,10.96.0.0/16' }, inRange],
  );

  const apiServers = [{ address: '192.168.1.1' }, { address: '2001:db8::1' }];
  const oneFamily = { serviceClusterIPRange: IPV4_RANGE, apiServers: apiServers.slice(0, 1) };
  const byCount = { endpoints: { reconciler: 'master-count', masterCount: 2 } };
  const policy = (ipFamilyPolicy: string) => ({ service: { ipFamilyPolicy } });
  test.each([
    ['meets these conditions', {}, []],
    ['has one range', oneFamily, [/requires two ranges/]],
    ['has the reconciler master-count', byCount, [/requires leases/]],
    ['has the policy SingleStack', policy('SingleStack'), [/must match/]],
    ['has the policy RequireDualStack', policy('RequireDualStack'), [/is "RequireDualStack"/, /must match/]],
  ])('API servers of two families need PreferDualStack, leases and two ranges; a spec %s', (_what, fields, faults) => {
    const serviceClusterIPRange = [IPV4_RANGE, IPV6_RANGE];
    const found = faultsOf(aSpec({ apiServers, serviceClusterIPRange, ...policy('PreferDualStack'), ...fields }));
    expect(found).toEqual(faults.map((fault) => expect.stringMatching(fault)));
  });
});

describe('the node port of the Service', () => {
  const nodePort = (port: number, serviceNodePortRange: string, ...faults: string[]): Row => [
    { service: { nodePort: port }, serviceNodePortRange },
    ...faults.map((fault) => `service.nodePort: ${fault}`),
  ];
  const bounds = (port: number) => `${port} is not a valid node port: write 0, or a port of serviceNodePortRange`;
  testFaults(
    nodePort(-1, '30065', bounds(-1)),
    nodePort(65536, '30065', bounds(65536)),
    nodePort(0, '30065'),
    nodePort(30064, '30065', outside('30065-30065', 30064)),
    nodePort(30067, '30065-30069'),
  );
});

describe('extra ports', () => {
  const of = (extraPorts: readonly object[], fault: string, nodePort = 0): Row => [
    { service: { extraPorts, nodePort } },
    `service.extraPorts${fault}`,
  ];
  const port = (name: string, number: number, fields: object = {}) => ({ name, port: number, ...fields });
  const UDP = { protocol: 'UDP' };
  testFaults(
    of([{ port: 1 }], '[0].name: is required'),
    of([port('a', 1), port('a', 2)], '[1].name: a is there already'),
    of([port('A_b', 1)], `[0].name: "A_b" is not a valid port name: ${LABEL}`),
    of([port('a', 1, { targetPort: 70000 })], `[0].targetPort: 70000 ${NO_PORT}`),
    of([port('a', 443)], '[0].port: service has TCP port 443 already'),
    of([port('a', 1, UDP), port('b', 1, UDP)], '[1].port: service.extraPorts[0] has UDP port 1 already'),
    of([port('a', 1, { nodePort: 30001 })], '[0].nodePort: a Service of type ClusterIP has no node ports'),
    of([port('a', 1, { nodePort: 80 })], `[0].nodePort: ${outside('30000-32767', 80)}`, 30443),
    of([port('a', 1, { nodePort: 30443 })], '[0].nodePort: service has TCP nodePort 30443 already', 30443),
    [
      {
        service: {
          nodePort: 30443,
          extraPorts: [port('quic', 443, { ...UDP, nodePort: 30443 }), port('dns', 53, UDP), port('dns-tcp', 53)],
        },
      },
    ],
    [
      { endpoints: { extraPorts: [port('https', 0)] } },
      `endpoints.extraPorts[0].port: 0 ${NO_PORT}`,
      "endpoints.extraPorts[0].name: https is the API servers' own port",
    ],
  );
});

const interval = (loop: Loop, seconds: number): Row => [
  { intervalSeconds: { [loop]: seconds }, endpoints: { leaseSeconds: 60 } },
  `intervalSeconds.${loop}: ${loop} cannot run every ${seconds} s: write a multiple of ${SCHEDULE_SECONDS[loop]}, its schedule, at most 86400 (a day)`,
];
const lease = (leaseSeconds: number, ...faults: string[]): Row => [
  { endpoints: { leaseSeconds } },
  ...faults.map((fault) => `endpoints.leaseSeconds: ${leaseSeconds} s ${fault}`),
];
testFaults(
  interval('kubernetes-service', 15),
  interval('kubernetes-service', 0),
  interval('node-port-repair', 200),
  interval('node-port-repair', 86580),
  lease(14, 'is less than 1.5 times the interval of kubernetes-service, 10 s'),
  lease(15),
  lease(0, 'is not a valid time for a lease'),
  lease(86_401, 'is not a valid time for a lease'),
);

const role = 'arn:aws:iam::123456789012:role/teams/read-kubeconfigs';
const EXAMPLE_ROLE = 'arn:aws:iam::123456789012:role/read-kubeconfigs';
const stored = (kind: string, slash: string) =>
  `is not a valid name of a ${kind}: write one such as ${slash}kube-bootstrap-controller/dev/prod-eu-1, or the ARN of the ${kind}`;
const ca = Buffer.from('-----BEGIN CERTIFICATE-----').toString('base64');
const access = (kubeconfig: object, fault?: string): Row =>
  fault === undefined ? [{ kubeconfig }] : [{ kubeconfig }, `kubeconfig${fault}`];
const webIdentity = (server: string, fault: string) =>
  access({ webIdentity: { server } }, `.webIdentity.server: "${server}" ${fault}`);
testFaults(
  access({ secretsManager: 'kbc/prod-1', roleArn: role, context: 'admin@prod' }),
  access({ secretsManager: 'arn:aws-cn:secretsmanager:cn-north-1:123456789012:secret:kbc/prod-1-AbCdEf' }),
  access({ ssm: '/kbc/prod-1', roleArn: role }),
  access({ ssm: 'arn:aws:ssm:eu-west-1:123456789012:parameter/kbc/prod-1' }),
  access({ webIdentity: { server: 'https://203.0.113.10:6443' } }),
  access({ webIdentity: { server: 'https://[2001:db8::1]/clusters/a', certificateAuthorityData: ca } }),
  access({}, `: ${NO_KUBECONFIG}`),
  access({ file: '' }, '.file: is empty'),
  access({ file: './x', ssm: '/kbc/x' }, ': has both file and ssm'),
  access({ file: './x', roleArn: role }, '.roleArn: has no meaning beside file'),
  access(
    { ssm: '/kbc/x', roleArn: 'reader' },
    `.roleArn: "reader" is not the ARN of a role: write one such as ${EXAMPLE_ROLE}`,
  ),
  access({ secretsManager: 'a b' }, `.secretsManager: "a b" ${stored('secret', '')}`),
  access({ ssm: 'arn:aws:s3:::x' }, `.ssm: "arn:aws:s3:::x" ${stored('parameter', '/')}`),
  ...['https://sts.amazonaws.com', 'https://sts.eu-west-1.amazonaws.com:443/'].map((server) =>
    webIdentity(server, 'is AWS STS, where a token of this audience could be exchanged for credentials'),
  ),
  ...['https://127.0.0.1:6443', 'https://localhost:6443', 'https://[::1]:6443', 'https://169.254.169.254'].map(
    (server) => webIdentity(server, 'is a loopback, link-local or metadata address, which every machine has'),
  ),
);

const fields = [...Object.keys(writtenSpecShape.shape), '__proto__'];

test('any value of a field is either valid or a fault of that field, and does not hide the faults of other fields', () => {
  fc.assert(
    fc.property(fc.constantFrom(...fields), fc.jsonValue(), (field, value) => {
      const spec = Object.defineProperty({ ...minimal, colour: 'blue' }, field, { value, enumerable: true });
      const faults = faultsOf(spec);
      expect(faults).toContain('colour: is not a field');
      const ofOthers = faults.filter((fault) => !/^(colour|apiServers|endpoints|service)/.test(fault));
      expect(ofOthers.filter((fault) => !fault.startsWith(field))).toEqual([]);
    }),
  );
});
