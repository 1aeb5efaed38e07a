import { describe, expect, test } from '@jest/globals';
import { nearestName } from '../../../cli/spec/names.ts';
import { checkServiceRanges } from '../../../cli/spec/network-rules.ts';
import { parseClusterSpec } from '../../../cli/spec/parse-cluster-spec.ts';
import { fault, type SpecFault } from '../../../cli/spec/spec-fault.ts';
import { writtenSpecShape } from '../../../lib/spec/cluster-spec.ts';
import { readServiceRanges } from '../../../lib/spec/spec-parts.ts';
import { specIn } from '../../support/a-cluster-spec.ts';
import { readInRepository } from '../../support/repository.ts';

const example = readInRepository('cluster.example.yml');

const head = `name: prod-1
mode: observe
kubeconfig: { file: ./admin.kubeconfig }
`;

const servers = 'apiServers: [{ address: "10.0.0.1" }]\n';

function faultsIn(text: string): string[] {
  const result = parseClusterSpec(text);
  return 'faults' in result ? result.faults.map(({ path, message }) => `${path}: ${message}`) : [];
}

test('the commented-out fields of the example file have their default values', () => {
  const fields = example
    .split('\n')
    .filter((line) => /^# ( +)?[a-zA-Z-]+:( |$)/.test(line))
    .map((line) => line.slice(2))
    .filter((line) => !/^(observe|table|yaml-language-server):/.test(line));
  const shown = parseClusterSpec(`${head}${servers}${fields.join('\n')}\n`);
  const standard = parseClusterSpec(`${head}${servers}`);
  expect(fields.length).toBeGreaterThan(Object.keys(writtenSpecShape.shape).length - 4);
  expect(shown).toEqual(standard);
});

const port = { name: 'konnectivity', protocol: 'TCP', port: 8132 };
test.each([
  ['a hexadecimal port', 'service: { port: 0x1BB }\n', { service: { port: 443 } }],
  ['a number with an exponent', 'maxEventsPerPass: 1e2\n', { maxEventsPerPass: 100 }],
  [
    'an anchor, and an alias that uses its value again',
    'endpoints: { extraPorts: &ports [{ name: konnectivity, port: 8132 }] }\nservice: { extraPorts: *ports }\n',
    { endpoints: { extraPorts: [port] }, service: { extraPorts: [{ ...port, targetPort: 8132 }] } },
  ],
])('a YAML file can contain %s', (_, text, fields) => {
  expect(specIn(`${head}${servers}${text}`)).toMatchObject(fields);
});

test('a YAML file can begin with a byte order mark and have Windows line breaks', () => {
  expect(faultsIn(`\uFEFF${head}${servers}`.replaceAll('\n', '\r\n'))).toEqual([]);
});

const NOT_YAML = 'is not the YAML of a cluster spec:';
test.each([
  ['', 'is empty'],
  ['- name: x\n', 'is a list'],
  ['name = x\n', 'is text'],
  ['name: a\nmode: observe\nname: b\n', `${NOT_YAML} Map keys must be unique at line 3, column 1`],
  ['kubeconfig:\n\tfile: x\n', `${NOT_YAML} Tabs are not allowed as indentation at line 2, column 1`],
  ['name: a\n---\nname: b\n', `${NOT_YAML} A second document begins at line 2`],
  ['name: !secret x\n', `${NOT_YAML} Unresolved tag: !secret at line 1, column 7`],
  ['name: *other\n', `${NOT_YAML} Unresolved alias (the anchor must be set before the alias): other`],
])('the text %j has only this fault: %s', (text, fault) => {
  expect(faultsIn(text)).toEqual([`: ${fault}`]);
});

test('a YAML bomb, whose aliases multiply, is a fault', () => {
  const row = (name: string, of: string) => `${name}: &${name} [${Array.from({ length: 10 }, () => of).join(', ')}]\n`;
  const text = row('a', '1') + row('b', '*a') + row('c', '*b') + row('d', '*c');
  expect(faultsIn(text)).toEqual([expect.stringContaining('Excessive alias count')]);
});

test.each([
  ['40 lists', Array.from({ length: 40 }, (_, index) => `field${index}: [`).join('\n')],
  ['50,000 lists in each other', '['.repeat(50_000)],
])('a document in which %s do not end has one to ten faults', (_, text) => {
  const { length } = faultsIn(text);
  expect(length).toBeGreaterThan(0);
  expect(length).toBeLessThanOrEqual(10);
});

test.each([
  ['mode: on', 'mode: is "on"'],
  ['maxEventsPerPass: 99999999999999999999', 'maxEventsPerPass: is 100000000000000000000'],
  ['maxEventsPerPass: .inf', 'maxEventsPerPass: is Infinity'],
  ['service: { reconcile: yes }', 'service.reconcile: is "yes"'],
  ['__proto__: { mode: enforce }', '__proto__: is not a field'],
  ['<<: { mode: enforce }', '["<<"]: is not a field'],
  ['"": 1', '[""]: is not a field'],
  ['"a b": 1', '["a b"]: is not a field'],
  ['systemNamespaces: [1.0]', 'systemNamespaces[0]: is 1'],
])('a spec with %s has one fault: %s', (text, fault) => {
  const mode = text.startsWith('mode') ? '' : 'mode: observe\n';
  const whole = `name: prod-1\n${mode}kubeconfig: { file: x }\napiServers: [{ address: 10.0.0.1 }]\n${text}\n`;
  expect(faultsIn(whole)).toEqual([expect.stringContaining(fault)]);
});

function rangeFaults(text: string | readonly string[], allocator: 'table' | 'apiserver' = 'apiserver'): SpecFault[] {
  const faults: SpecFault[] = [];
  checkServiceRanges({ serviceClusterIPRange: text, allocator }, (at, message) => void faults.push(fault(at, message)));
  return faults;
}

const NO_RANGE = '--service-cluster-ip-range must contain at least one valid cidr';
const FIRST = 'service-cluster-ip-range[0] is not a valid cidr';
const SECOND = 'service-cluster-ip-range[1] is not an ip net';
const TOO_SMALL =
  'error determining service IP ranges for primary service cidr: the service cluster IP range must be at least 8 IP addresses';
const SAME_FAMILY = '--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family';
const THREE = '--service-cluster-ip-range must not contain more than two entries';
const tooLarge = (bits: number, mask: number, index = '') =>
  `specified --service-cluster-ip-range${index} is too large; for ${bits}-bit addresses, the mask must be >= ${mask}`;

describe('the service address and ranges', () => {
  test.each([
    { text: '', ranges: ['10.0.0.0/24', undefined] },
    { text: '192.0.2.1/24,192.168.128.0/17', ranges: ['192.0.2.0/24', '192.168.128.0/17'] },
    { text: '192.0.2.1/24,2001:db2:1:3:4::1/112', ranges: ['192.0.2.0/24', '2001:db2:1:3:4::/112'] },
  ])('the service address and ranges are read from "$text"', ({ text, ranges }) => {
    const { primary, secondary } = readServiceRanges(text);
    expect([primary?.text, secondary?.text]).toEqual(ranges);
  });

  test.each<[string, string[]]>([
    ['192.0.2.1/33,192.168.128.0/17', [FIRST]],
    ['192.0.2.1/24,2001:db2:1:3:4::1/129', [SECOND]],
    ['192.0.2.1/24,192.168.128.1', [SECOND]],
    ['2001:db2:1:3:4::1,192.0.2.1/24', [FIRST]],
    ['bad.ip.range,192.168.0.2/24', [FIRST]],
    ['10.0.0.0/24, fd00::/112', [SECOND]],
    [',10.0.0.0/24', [FIRST]],
    ['192.0.2.1/30,192.168.128.0/17', [TOO_SMALL, SAME_FAMILY]],
    ['10.0.0.0/29', []],
    ['10.0.0.0/30', [TOO_SMALL]],
    ['2001:db8::/125', []],
    ['2001:db8::/126', [TOO_SMALL]],
    ['10.0.0.0/2', []],
    ['2001:db8::/12', []],
    ['10.0.0.0/16,3000::/48', []],
    ['0.0.0.0/1', [TOO_SMALL]],
    ['::/0', [TOO_SMALL]],
  ])('if the API servers allocate, the service ranges "%s" have the faults %j', (text, messages) => {
    expect(rangeFaults(text).map(({ message }) => message)).toEqual(messages);
  });
});

describe('the service cluster IP range', () => {
  test.each<[string | string[], string[]]>([
    [[], [NO_RANGE]],
    ['10.0.0.0/16,11.0.0.0/16', [SAME_FAMILY]],
    ['10.0.0.0/8', [tooLarge(32, 12)]],
    ['2001:db8::/64', [tooLarge(128, 108)]],
    ['10.0.0.0/16,3000::/64', [tooLarge(128, 108, '[1]')]],
    ['10.0.0.0/16,3000::/108,244.0.0.0/16', [THREE]],
    ['10.0.0.0/16,3000::/108', []],
  ])('if the table allocates, the service range %j has the faults %j', (text, messages) => {
    expect(rangeFaults(text, 'table').map(({ message }) => message)).toEqual(messages);
  });

  test('a fault in a list has the path of the invalid entry', () => {
    expect(rangeFaults(['10.0.0.0/24', '10.0.0.0']).map(({ path }) => path)).toEqual(['serviceClusterIPRange[1]']);
  });
});

test.each<[string, string, readonly string[], string | undefined]>([
  ['a name that differs in one letter', 'prod-eu1', ['prod-us-1', 'prod-eu-1'], 'prod-eu-1'],
  ['the only name that begins with the text', 'Dupl', ['full', 'duplicate'], 'duplicate'],
  ['a name that differs in three letters, whatever their case', 'servers', ['name', 'apiServers'], 'apiServers'],
  ['no name if two names begin with the text', 'prod', ['prod-eu-1', 'prod-us-1'], undefined],
])('nearestName returns %s', (_, name, known, nearest) => {
  expect(nearestName(name, known)).toBe(nearest);
});
