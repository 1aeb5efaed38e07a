import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { validateClusterSpec } from '../../../cli/spec/validate-cluster-spec.ts';
import { aClusterSpec, aServer } from '../../support/a-cluster-spec.ts';
import { aSpec, faultsOf, minimal, validSpec } from './spec-support.ts';

const TARGET_GROUP = 'arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/prod/0123456789abcdef';
const SERVICE_REF = { namespace: 'tenants', name: 'prod', kubeconfig: { secretsManager: 'management' } };

describe('a cluster spec', () => {
  test("a spec with only the required fields has upstream's defaults", () => {
    const kubeconfig = { file: './admin.kubeconfig' };
    const apiServers = [aServer('203.0.113.10')];
    expect(validSpec(minimal)).toEqual(aClusterSpec({ name: 'prod-1', mode: 'observe', kubeconfig, apiServers }));
  });

  const IPV6_RANGE = { serviceClusterIPRange: 'fd00::/112' };
  const at = (address: string) => ({ apiServers: [{ address }] });
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
    ['an IPv6 address in capitals', { ...at('2001:DB8:0::9'), ...IPV6_RANGE }, at('2001:db8::9')],
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
    expect(validSpec(aSpec(fields as Record<string, unknown>))).toMatchObject(stored);
  });

  const httpProbe = { address: '10.0.0.1', probe: { url: 'http://10.0.0.1:8080/readyz' } };
  const quic = { name: 'quic', port: 443, protocol: 'UDP', nodePort: 30443 };
  const dns = [
    { name: 'dns', port: 53, protocol: 'UDP' },
    { name: 'dns-tcp', port: 53 },
  ];
  test.each([
    ['a probe over http:// without a credential', { apiServers: [httpProbe] }],
    [
      'an empty list of API servers if the reconciler is none',
      { apiServers: [], endpoints: { reconciler: 'none', leaseSeconds: 1 } },
    ],
    ['a host name with a range of any family', { apiServers: [{ host: 'a.example' }], ...IPV6_RANGE }],
    ['one port number for several protocols', { service: { nodePort: 30443, extraPorts: [quic, ...dns] } }],
  ])('a cluster spec can contain %s', (_what, fields) => {
    expect(faultsOf(aSpec(fields))).toEqual([]);
  });
});

describe('a fault', () => {
  test.each([
    [{ name: '#clusters' }, 'name: "#clusters" is not a valid cluster name'],
    [{ name: 'a'.repeat(64) }, `name: "${'a'.repeat(64)}" is not a valid cluster name`],
    [{ mode: 'dry-run' }, 'mode: is "dry-run"'],
    [{ endpoints: null }, 'endpoints: is empty'],
    [{ endpoints: { leaseSeconds: 1e300 } }, 'endpoints.leaseSeconds: is 1e+300'],
    [{ endpoints: { reconciler: 'etcd' } }, 'endpoints.reconciler: Reconciler not implemented: etcd'],
    [
      { endpoints: { masterCount: 0 } },
      "endpoints.masterCount: --apiserver-count should be a positive number, but value '0' provided",
    ],
    [{ service: { port: 443.5 } }, 'service.port: is 443.5'],
    [{ service: { port: 65536 } }, 'service.port: 65536 is not a valid port'],
    [
      { service: { securePort: 0 } },
      'service.securePort: --secure-port 0 must be between 1 and 65535, inclusive. It cannot be turned off with 0',
    ],
    [{ maxEventsPerPass: -1 }, 'maxEventsPerPass: -1 is not a valid number of events'],
    [{ apiServers: [{ adress: '10.0.0.1' }] }, 'apiServers[0].adress: is not a field'],
    [{ systemNamespaces: ['Kube'] }, 'systemNamespaces[0]: "Kube" is not a valid namespace name'],
    [{ systemNamespaces: ['a', 'a'] }, 'systemNamespaces[1]: "a" is listed twice'],
    [{ callerKeys: ['secret'] }, 'callerKeys[0]: is not a SHA-256 hash in hex'],
    [{ callerKeys: ['a'.repeat(64), 'a'.repeat(64)] }, 'callerKeys[1]: is listed twice'],
    [{ serviceNodePortRange: 'many' }, 'serviceNodePortRange: "many" is not a range of ports'],
    [{ serviceNodePortRange: '200-100' }, 'serviceNodePortRange: end port cannot be less than start port: 200-100'],
    [
      { serviceNodePortRange: '60000-70000' },
      'serviceNodePortRange: the port range cannot be greater than 65535: 60000-70000',
    ],
  ])('a spec with %j has this fault: %s', (fields, fault) => {
    expect(faultsOf(aSpec(fields))).toContain(fault);
  });

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

  test('all faults of a spec are reported at the same time', () => {
    const faults = faultsOf({
      name: 'Prod',
      kubeconfig: { file: 7 },
      apiServers: [{ address: '127.0.0.1' }, { address: '10.0.0.1' }, { address: '10.0.0.1' }, {}],
      allocator: 'table',
      serviceClusterIPRange: '10.0.0.0/8',
      endpoints: { reconciler: 'master-count', leaseSeconds: 10, extraPorts: 'none' },
      service: { nodePort: 80 },
      intervalSeconds: { 'kubernetes-service': 20, 'cluster-ip-repair': 60 },
      colour: 'blue',
    });
    expect(faults.sort()).toEqual([
      'apiServers[0].address: may not be in the loopback range (127.0.0.0/8, ::1/128)',
      'apiServers[1].address: is in the range of cluster IPs 10.0.0.0/8, which endpoints must not be in',
      'apiServers[2].address: apiServers[1] is the same',
      'apiServers[2].address: is in the range of cluster IPs 10.0.0.0/8, which endpoints must not be in',
      'apiServers[3]: has neither an address, a host, a targetGroupArn nor a serviceRef',
      'colour: is not a field',
      'endpoints.extraPorts: is "none"',
      'endpoints.leaseSeconds: 10 s is less than 1.5 times the interval of kubernetes-service, 20 s',
      'endpoints.masterCount: 1 is less than the 4 API servers in apiServers',
      'intervalSeconds.cluster-ip-repair: cluster-ip-repair cannot run every 60 s: its schedule is every 180 s',
      'kubeconfig.file: is 7',
      'mode: is required',
      'name: "Prod" is not a valid cluster name',
      "service.nodePort: kubernetes service node port range 30000-32767 doesn't contain 80",
      'serviceClusterIPRange: specified --service-cluster-ip-range is too large; for 32-bit addresses, the mask must be >= 12',
    ]);
  });
});

const NO_KUBECONFIG = 'has neither file, secretsManager, ssm nor webIdentity';
const ALWAYS_SHARED = 'an entry without an address is always shared: its addresses change';

describe('an API server', () => {
  test.each([
    [{ address: '10.0.0.1', host: 'a.example' }, ': has both address and host'],
    [{ host: 'a.example', serviceRef: SERVICE_REF }, ': has both host and serviceRef'],
    [{ targetGroupArn: 'prod' }, '.targetGroupArn: "prod" is not the ARN of a target group'],
    [{ targetGroupArn: TARGET_GROUP, kind: 'server' }, `.kind: ${ALWAYS_SHARED}`],
    [{ serviceRef: { ...SERVICE_REF, name: 'A b' } }, '.serviceRef.name: "A b" is not a valid name'],
    [{ serviceRef: { ...SERVICE_REF, kubeconfig: {} } }, `.serviceRef.kubeconfig: ${NO_KUBECONFIG}`],
    [{ address: '10.0.0.256' }, '.address: "10.0.0.256" is not an IP address'],
    [{ address: 'fe80::1%eth0' }, '.address: "fe80::1%eth0" is not an IP address'],
    [{ address: '0.0.0.0' }, '.address: may not be unspecified (0.0.0.0)'],
    [{ address: '169.254.1.1' }, '.address: may not be in the link-local range (169.254.0.0/16, fe80::/10)'],
    [{ address: 'ff02::1' }, '.address: may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)'],
    [{ address: '239.1.1.1' }, '.address: may not be a multicast address'],
    [{ host: '10.0.0.1' }, '.host: 10.0.0.1 is an address'],
    [{ host: 'a.example:6443' }, '.host: "a.example:6443" is not a valid host name'],
    [{ host: '10.0.0.256' }, '.host: "10.0.0.256" is not a valid host name'],
    [{ host: 'a.example', kind: 'server' }, `.kind: ${ALWAYS_SHARED}`],
  ])('the API server %j is refused: %s', (server, fault) => {
    expect(faultsOf(aSpec({ apiServers: [server] }))).toEqual([`apiServers[0]${fault}`]);
  });

  test.each([
    [{ url: 'tcp://10.0.0.1:6443' }, 'url: "tcp://10.0.0.1:6443" is not an http or https URL'],
    [{ url: '10.0.0.1:6443/readyz' }, 'url: "10.0.0.1:6443/readyz" is not an http or https URL'],
    [
      { url: 'http://10.0.0.1/readyz', authenticate: true },
      'url: would send the credential of probe.authenticate unencrypted',
    ],
    [{ url: 'https://admin:secret@10.0.0.1/readyz' }, 'url: contains a credential, which would be stored and logged'],
    [{ path: 'readyz' }, 'path: "readyz" is not a path'],
    [{ url: 'https://10.0.0.1/readyz', path: '/livez' }, 'path: has no meaning beside probe.url'],
  ])('the probe %j is refused: %s', (probe, fault) => {
    const faults = faultsOf(aSpec({ apiServers: [{ address: '10.0.0.1', probe }] }));
    expect(faults).toEqual([`apiServers[0].probe.${fault}`]);
  });
});

describe('API servers', () => {
  test.each([
    { first: { address: '10.0.0.1' }, second: { address: '010.0.0.1' }, path: 'apiServers[1].address' },
    { first: { address: '10.0.0.1' }, second: { address: '::ffff:a00:1' }, path: 'apiServers[1].address' },
    { first: { host: 'a.example' }, second: { host: 'A.EXAMPLE' }, path: 'apiServers[1].host' },
  ])('an API server may be listed only once: $first and $second', ({ first, second, path }) => {
    expect(faultsOf(aSpec({ apiServers: [first, second] }))).toEqual([`${path}: apiServers[0] is the same`]);
  });

  test.each(['lease', 'master-count'])(
    'the list of API servers must not be empty if the reconciler is %s',
    (reconciler) => {
      const fault = 'apiServers: is empty: without an API server the kubernetes Service has no endpoints';
      expect(faultsOf(aSpec({ apiServers: [], endpoints: { reconciler } }))).toEqual([fault]);
    },
  );

  const IPV4_RANGE = '192.168.0.0/24';
  const IPV6_RANGE = '2001:db8:5::/112';
  const disagree = (ranges: string, address: string) =>
    `apiServers[0].address: service IP family "${ranges.split(',')[0]}" must match public address family "${address}"`;

  test.each([
    { reconciler: 'master-count', range: IPV4_RANGE, address: '2001:db8::1', agree: false },
    { reconciler: 'lease', range: IPV6_RANGE, address: '2001:db8::1', agree: true },
    { reconciler: 'lease', range: IPV6_RANGE, address: '192.168.1.1', agree: false },
    { reconciler: 'none', range: IPV4_RANGE, address: '2001:db8::1', agree: true },
    { reconciler: 'lease', range: `${IPV6_RANGE},${IPV4_RANGE}`, address: '192.168.1.1', agree: false },
  ])(
    'the reconciler $reconciler accepts an API server with the address $address if the range is $range: $agree',
    (row) => {
      const { reconciler, range, address, agree } = row;
      const spec = aSpec({ apiServers: [{ address }], serviceClusterIPRange: range, endpoints: { reconciler } });
      expect(faultsOf(spec)).toEqual(agree ? [] : [disagree(range, address)]);
    },
  );

  test.each([
    ['10.96.0.1', '10.96.0.0/16', '10.96.0.0/16'],
    ['::ffff:10.96.0.9', 'fd00::/112,10.96.0.0/16', '10.96.0.0/16'],
  ])('the address of an API server must not be %s if the ranges of cluster IPs are %s', (address, range, named) => {
    const fault = `apiServers[0].address: is in the range of cluster IPs ${named}, which endpoints must not be in`;
    expect(faultsOf(aSpec({ apiServers: [{ address }], serviceClusterIPRange: range }))).toEqual([fault]);
  });

  const apiServers = [{ address: '192.168.1.1' }, { address: '2001:db8::1' }];
  const oneFamily = { serviceClusterIPRange: IPV4_RANGE, apiServers: apiServers.slice(0, 1) };
  const byCount = { endpoints: { reconciler: 'master-count', masterCount: 2 } };
  const policy = (ipFamilyPolicy: string) => ({ service: { ipFamilyPolicy } });
  test.each([
    ['meets these conditions', {}, []],
    ['has one range', oneFamily, [/requires two ranges/]],
    ['has the reconciler master-count', byCount, [/requires leases/]],
    ['has the policy SingleStack', policy('SingleStack'), [/must match/]],
    [
      'has the policy RequireDualStack',
      policy('RequireDualStack'),
      [/ipFamilyPolicy: is "RequireDualStack"/, /must match/],
    ],
  ])(
    'the spec can contain API servers of both families only with PreferDualStack, leases and two ranges; here, it %s',
    (_what, fields, faults) => {
      const serviceClusterIPRange = [IPV4_RANGE, IPV6_RANGE];
      const found = faultsOf(aSpec({ apiServers, serviceClusterIPRange, ...policy('PreferDualStack'), ...fields }));
      expect(found).toEqual(faults.map((fault) => expect.stringMatching(fault)));
    },
  );
});

describe('the node port of the Service', () => {
  const bounds = (port: number) =>
    `service.nodePort: --kubernetes-service-node-port ${port} must be between 0 and 65535, inclusive. If 0, the Kubernetes master service will be of type ClusterIP`;
  const outside = (range: string, port: number) =>
    `service.nodePort: kubernetes service node port range ${range} doesn't contain ${port}`;

  test.each([
    { name: 'below 0', nodePort: -1, range: '30065', faults: [bounds(-1)] },
    { name: 'above 65535', nodePort: 65536, range: '30065', faults: [bounds(65536), outside('30065-30065', 65536)] },
    { name: '0', nodePort: 0, range: '30065', faults: [] },
    { name: 'below the range', nodePort: 30064, range: '30065', faults: [outside('30065-30065', 30064)] },
    { name: 'in the range', nodePort: 30067, range: '30065-30069', faults: [] },
  ])('the node port of the Service is checked: $name', ({ nodePort, range, faults }) => {
    expect(faultsOf(aSpec({ service: { nodePort }, serviceNodePortRange: range }))).toEqual(faults);
  });
});

describe('extra ports', () => {
  test.each<[object[], string, number?]>([
    [[{ port: 1 }], '[0].name: is required'],
    [
      [
        { name: 'a', port: 1 },
        { name: 'a', port: 2 },
      ],
      '[1].name: a is there already',
    ],
    [[{ name: 'A_b', port: 1 }], '[0].name: "A_b" is not a valid port name'],
    [[{ name: 'a', port: 1, targetPort: 70000 }], '[0].targetPort: 70000 is not a valid port'],
    [[{ name: 'a', port: 443 }], '[0].port: service.port has TCP port 443 already'],
    [
      [
        { name: 'a', port: 1, protocol: 'UDP' },
        { name: 'b', port: 1, protocol: 'UDP' },
      ],
      '[1].port: service.extraPorts[0] has UDP port 1 already',
    ],
    [[{ name: 'a', port: 1, nodePort: 30001 }], '[0].nodePort: a Service of type ClusterIP has no node ports'],
    [
      [{ name: 'a', port: 1, nodePort: 80 }],
      "[0].nodePort: kubernetes service node port range 30000-32767 doesn't contain 80",
      30443,
    ],
    [
      [{ name: 'a', port: 1, nodePort: 30443 }],
      '[0].nodePort: service.nodePort has TCP node port 30443 already',
      30443,
    ],
  ])('extra ports of the Service are refused: %j, %s', (extraPorts, fault, nodePort = 0) => {
    expect(faultsOf(aSpec({ service: { extraPorts, nodePort } }))).toEqual([`service.extraPorts${fault}`]);
  });

  test('extra ports of the endpoints are checked like extra ports of the Service', () => {
    expect(faultsOf(aSpec({ endpoints: { extraPorts: [{ name: 'https', port: 0 }] } }))).toEqual([
      'endpoints.extraPorts[0].port: 0 is not a valid port',
      "endpoints.extraPorts[0].name: https is the API servers' own port",
    ]);
  });
});

describe('intervals and lease durations', () => {
  test.each([
    ['kubernetes-service', 15, 10],
    ['kubernetes-service', 0, 10],
    ['node-port-repair', 200, 180],
    ['node-port-repair', 86580, 180],
  ] as const)('%s cannot run every %d s, only every multiple of %d s', (loop, seconds, schedule) => {
    const spec = aSpec({ intervalSeconds: { [loop]: seconds }, endpoints: { leaseSeconds: 60 } });
    expect(faultsOf(spec)).toEqual([
      `intervalSeconds.${loop}: ${loop} cannot run every ${seconds} s: its schedule is every ${schedule} s`,
    ]);
  });

  const notValid = (seconds: number) => `${seconds} s is not a valid time for a lease`;
  const tooShort = (seconds: number, interval: number) =>
    `${seconds} s is less than 1.5 times the interval of kubernetes-service, ${interval} s`;
  test.each([
    { leaseSeconds: 14, interval: 10, faults: [tooShort(14, 10)] },
    { leaseSeconds: 15, interval: 10, faults: [] },
    { leaseSeconds: 0, interval: 10, faults: [notValid(0)] },
    { leaseSeconds: 86_401, interval: 10, faults: [notValid(86_401)] },
  ])('a lease of $leaseSeconds s with an interval of $interval s has the faults $faults', (row) => {
    const { leaseSeconds, interval, faults } = row;
    const spec = aSpec({ endpoints: { leaseSeconds }, intervalSeconds: { 'kubernetes-service': interval } });
    expect(faultsOf(spec)).toEqual(faults.map((fault) => `endpoints.leaseSeconds: ${fault}`));
  });
});

describe('the kubeconfig', () => {
  const role = 'arn:aws:iam::123456789012:role/teams/read-kubeconfigs';
  const ca = Buffer.from('-----BEGIN CERTIFICATE-----').toString('base64');

  test.each([
    { kubeconfig: { secretsManager: 'kbc/prod-1', roleArn: role, context: 'admin@prod' } },
    { kubeconfig: { secretsManager: 'arn:aws-cn:secretsmanager:cn-north-1:123456789012:secret:kbc/prod-1-AbCdEf' } },
    { kubeconfig: { ssm: '/kbc/prod-1', roleArn: role } },
    { kubeconfig: { ssm: 'arn:aws:ssm:eu-west-1:123456789012:parameter/kbc/prod-1' } },
    { kubeconfig: { webIdentity: { server: 'https://203.0.113.10:6443' } } },
    { kubeconfig: { webIdentity: { server: 'https://[2001:db8::1]/clusters/a', certificateAuthorityData: ca } } },
  ])('the kubeconfig $kubeconfig is valid', ({ kubeconfig }) => {
    expect(validSpec(aSpec({ kubeconfig })).kubeconfig).toEqual(kubeconfig);
  });

  const webIdentity = (server: string, fault: string): [object, string] => [
    { webIdentity: { server } },
    `.webIdentity.server: "${server}" ${fault}`,
  ];
  test.each<[object, string]>([
    [{}, `: ${NO_KUBECONFIG}`],
    [{ file: '' }, '.file: is empty'],
    [{ file: './x', ssm: '/kbc/x' }, ': has both file and ssm'],
    [{ file: './x', roleArn: role }, '.roleArn: has no meaning beside a file'],
    [{ ssm: '/kbc/x', roleArn: 'reader' }, '.roleArn: "reader" is not the ARN of a role'],
    [{ secretsManager: 'a b' }, '.secretsManager: "a b" is not a valid name of a secret'],
    [
      { ssm: 'arn:aws:secretsmanager:r:1:secret:x' },
      '.ssm: "arn:aws:secretsmanager:r:1:secret:x" is not a valid name of a parameter',
    ],
    ...['https://sts.amazonaws.com', 'https://sts.eu-west-1.amazonaws.com:443/'].map((server) =>
      webIdentity(server, 'is AWS STS, where a token of this audience could be exchanged for credentials'),
    ),
    ...['https://127.0.0.1:6443', 'https://localhost:6443', 'https://[::1]:6443', 'https://169.254.169.254'].map(
      (server) => webIdentity(server, 'is a loopback, link-local or metadata address, which every machine has'),
    ),
  ])('the kubeconfig %j is refused: kubeconfig%s', (kubeconfig, fault) => {
    expect(faultsOf(aSpec({ kubeconfig }))).toEqual([`kubeconfig${fault}`]);
  });
});

describe('a field with any value', () => {
  const fields = [
    'name',
    'mode',
    'allocator',
    'kubeconfig',
    'apiServers',
    'serviceClusterIPRange',
    'endpoints',
    'service',
  ];
  const others = ['serviceNodePortRange', 'systemNamespaces', 'intervalSeconds', 'maxEventsPerPass', '__proto__'];

  test('any value of a field is either valid or a fault of that field, and does not hide the faults of other fields', () => {
    fc.assert(
      fc.property(fc.constantFrom(...fields, ...others), fc.jsonValue(), (field, value) => {
        const spec = Object.defineProperty({ ...minimal, colour: 'blue' }, field, { value, enumerable: true });
        const faults = faultsOf(spec);
        expect(faults).toContain('colour: is not a field');
        const ofOthers = faults.filter((fault) => !/^(colour|apiServers|endpoints|service)/.test(fault));
        expect(ofOthers.filter((fault) => !fault.startsWith(field))).toEqual([]);
      }),
    );
  });
});
