import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { checkServiceRanges } from '../../../cli/spec/network-rules.ts';
import { parseClusterSpec } from '../../../cli/spec/parse-cluster-spec.ts';
import { fault, type SpecFault } from '../../../cli/spec/spec-fault.ts';
import { writtenSpecShape } from '../../../lib/cluster/cluster-spec.ts';
import { readServiceRanges } from '../../../lib/cluster/spec-parts.ts';
import { validSpec } from './spec-support.ts';

const example = readFileSync(join(import.meta.dirname, '../../../cluster.example.yml'), 'utf8');

const head = `name: prod-1
mode: observe
kubeconfig: { file: ./admin.kubeconfig }
`;

/** The faults as `path: message`. */
function faultsIn(text: string): string[] {
  const result = parseClusterSpec(text);
  return 'faults' in result ? result.faults.map(({ path, message }) => `${path}: ${message}`) : [];
}

function specIn(text: string): unknown {
  const result = parseClusterSpec(text);
  return 'spec' in result ? result.spec : result.faults;
}

test('the example file is a valid spec', () => {
  expect(faultsIn(example)).toEqual([]);
});

test('the example shows the defaults in its comments', () => {
  const fields = example
    .split('\n')
    .filter((line) => /^# ( +)?[a-zA-Z-]+:( |$)/.test(line))
    .map((line) => line.slice(2))
    .filter((line) => !/^(observe|table|yaml-language-server):/.test(line));
  const shown = parseClusterSpec(`${head}apiServers: [{ address: 10.0.0.1 }]\n${fields.join('\n')}\n`);
  const standard = parseClusterSpec(`${head}apiServers: [{ address: 10.0.0.1 }]\n`);
  expect(fields.length).toBeGreaterThan(Object.keys(writtenSpecShape.shape).length - 4);
  expect(shown).toEqual(standard);
});

describe('a YAML file', () => {
  test('a JSON file is read as the same spec', () => {
    const servers = [{ address: '10.0.0.1' }, { host: 'api.example.com' }];
    const value = { name: 'prod-1', mode: 'observe', kubeconfig: { file: './admin.kubeconfig' }, apiServers: servers };
    expect(specIn(JSON.stringify(value))).toEqual(validSpec(value));
  });

  test('a YAML file may contain a port in hexadecimal, a number with an exponent, and text in quotes', () => {
    const text = `${head}apiServers: [{ address: "10.0.0.1" }]\nservice: { port: 0x1BB }\nmaxEventsPerPass: 1e2\n`;
    expect(specIn(text)).toMatchObject({ service: { port: 443 }, maxEventsPerPass: 100 });
  });

  test('a YAML file may repeat a part by its anchor', () => {
    const ports = '[{ name: konnectivity, port: 8132 }]';
    const text = `${head}apiServers: [{ address: 10.0.0.1 }]\nendpoints: { extraPorts: &ports ${ports} }\nservice: { extraPorts: *ports }\n`;
    expect(specIn(text)).toMatchObject({
      endpoints: { extraPorts: [{ name: 'konnectivity', protocol: 'TCP', port: 8132 }] },
      service: { extraPorts: [{ name: 'konnectivity', protocol: 'TCP', port: 8132, targetPort: 8132 }] },
    });
  });

  test('a YAML file may begin with a byte order mark and have Windows line ends', () => {
    const text = `\uFEFF${head}apiServers: [{ address: 10.0.0.1 }]\n`.replaceAll('\n', '\r\n');
    expect(faultsIn(text)).toEqual([]);
  });

  test.each([
    ['', 'is empty'],
    ['# name: x\n', 'is empty'],
    ['- name: x\n', 'is a list'],
    ['name = x\n', 'is "name = x"'],
  ])('%j has a fault: %s', (text, fault) => {
    expect(faultsIn(text)).toEqual([`: ${fault}`]);
  });

  test.each([
    ['name: a\nmode: observe\nname: b\n', 'Map keys must be unique at line 3, column 1'],
    ['kubeconfig:\n\tfile: x\n', 'Tabs are not allowed as indentation at line 2, column 1'],
    ['name: a\n---\nname: b\n', 'A second document begins at line 2'],
    ['name: !secret x\n', 'Unresolved tag: !secret at line 1, column 7'],
    ['name: *other\n', 'Unresolved alias (the anchor must be set before the alias): other'],
  ])('the text %j has no valid YAML: %s', (text, message) => {
    expect(faultsIn(text)).toEqual([`: is not the YAML of a cluster spec: ${message}`]);
  });

  test('multiplying aliases are a fault', () => {
    const row = (name: string, of: string) =>
      `${name}: &${name} [${Array.from({ length: 10 }, () => of).join(', ')}]\n`;
    const text = row('a', '1') + row('b', '*a') + row('c', '*b') + row('d', '*c');
    expect(faultsIn(text)).toEqual([expect.stringContaining('Excessive alias count')]);
  });

  test('a document that is nested too deep is one fault', () => {
    expect(faultsIn('['.repeat(50_000)).length).toBeLessThan(3);
    expect(faultsIn('['.repeat(50_000))).not.toEqual([]);
  });

  test('a document that contains itself is a fault', () => {
    expect(faultsIn(`${head}apiServers: &all [*all]\n`)).toEqual(['apiServers[0]: is a list']);
  });

  test.each([
    ['mode: on', 'mode: is "on"'],
    ['maxEventsPerPass: 99999999999999999999', 'maxEventsPerPass: is 100000000000000000000'],
    ['maxEventsPerPass: .inf', 'maxEventsPerPass: is Infinity'],
    ['maxEventsPerPass: .nan', 'maxEventsPerPass: is NaN'],
    ['service: { reconcile: yes }', 'service.reconcile: is "yes"'],
    ['__proto__: { mode: enforce }', '__proto__: is not a field'],
    ['<<: { mode: enforce }', '["<<"]: is not a field'],
    ['systemNamespaces: [1.0]', 'systemNamespaces[0]: is 1'],
  ])('a spec with %s has one fault: %s', (text, fault) => {
    const mode = text.startsWith('mode') ? '' : 'mode: observe\n';
    const whole = `name: prod-1\n${mode}kubeconfig: { file: x }\napiServers: [{ address: 10.0.0.1 }]\n${text}\n`;
    expect(faultsIn(whole)).toEqual([expect.stringContaining(fault)]);
  });

  test('a spec of any text never throws', () => {
    const line = fc.constantFrom(
      'name: a',
      'apiServers:',
      '  - address: 10.0.0.1',
      '\tx',
      '- {',
      '*a',
      '&a',
      ': ',
      '---',
      '"',
      '|',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(line).map((lines) => lines.join('\n')),
        ),
        (text) => {
          expect(faultsIn(text)).not.toEqual([]);
        },
      ),
    );
  });

  test('a JSON value that is not a spec has a fault', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), (value) => {
        expect(faultsIn(JSON.stringify(value)).length).toBeGreaterThan(0);
      }),
    );
  });
});

function faultsOf(text: string | readonly string[], allocator: 'table' | 'apiserver' = 'apiserver'): SpecFault[] {
  const faults: SpecFault[] = [];
  checkServiceRanges({ serviceClusterIPRange: text, allocator }, (at, message) => void faults.push(fault(at, message)));
  return faults;
}

const messagesOf = (...given: Parameters<typeof faultsOf>) => faultsOf(...given).map(({ message }) => message);

const TOO_SMALL =
  'error determining service IP ranges for primary service cidr: the service cluster IP range must be at least 8 IP addresses';
const SAME_FAMILY = '--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family';

describe('the service address and ranges', () => {
  test.each([
    { text: '', ranges: ['10.0.0.0/24', undefined] },
    { text: '192.0.2.1/24', ranges: ['192.0.2.0/24', undefined] },
    { text: '192.0.2.1/24,192.168.128.0/17', ranges: ['192.0.2.0/24', '192.168.128.0/17'] },
    { text: '192.0.2.1/24,2001:db2:1:3:4::1/112', ranges: ['192.0.2.0/24', '2001:db2:1:3:4::/112'] },
    { text: '2001:db2:1:3:4::1/112,192.0.2.1/24', ranges: ['2001:db2:1:3:4::/112', '192.0.2.0/24'] },
  ])('the service address and ranges are read from "$text"', ({ text, ranges }) => {
    const { primary, secondary } = readServiceRanges(text);
    expect([primary?.text, secondary?.text]).toEqual(ranges);
  });

  test.each([
    { text: '192.0.2.1/30', message: TOO_SMALL },
    { text: '192.0.2.1/33,192.168.128.0/17', message: 'service-cluster-ip-range[0] is not a valid cidr' },
    { text: '192.0.2.1/24,192.168.128.0/33', message: 'service-cluster-ip-range[1] is not an ip net' },
    { text: '2001:db2:1:3:4::1/129,192.0.2.1/24', message: 'service-cluster-ip-range[0] is not a valid cidr' },
    { text: '192.0.2.1/24,2001:db2:1:3:4::1/129', message: 'service-cluster-ip-range[1] is not an ip net' },
    { text: '192.0.2.1,192.168.128.0/17', message: 'service-cluster-ip-range[0] is not a valid cidr' },
    { text: '192.0.2.1/24,192.168.128.1', message: 'service-cluster-ip-range[1] is not an ip net' },
    { text: '2001:db2:1:3:4::1,192.0.2.1/24', message: 'service-cluster-ip-range[0] is not a valid cidr' },
    { text: '192.0.2.1/24,2001:db2:1:3:4::1', message: 'service-cluster-ip-range[1] is not an ip net' },
    { text: 'bad.ip.range,192.168.0.2/24', message: 'service-cluster-ip-range[0] is not a valid cidr' },
    { text: '192.168.0.2/24,bad.ip.range', message: 'service-cluster-ip-range[1] is not an ip net' },
    { text: '10.0.0.0/24, fd00::/112', message: 'service-cluster-ip-range[1] is not an ip net' },
    { text: ',10.0.0.0/24', message: 'service-cluster-ip-range[0] is not a valid cidr' },
  ])('the service ranges "$text" are refused', ({ text, message }) => {
    expect(messagesOf(text)).toEqual([message]);
  });

  test('a small first range and a second one of its family are reported together', () => {
    expect(messagesOf('192.0.2.1/30,192.168.128.0/17')).toEqual([TOO_SMALL, SAME_FAMILY]);
  });

  test.each([
    { cidr: '10.0.0.0/29', enough: true },
    { cidr: '10.0.0.0/30', enough: false },
    { cidr: '2001:db8::/125', enough: true },
    { cidr: '2001:db8::/126', enough: false },
    { cidr: '10.0.0.0/2', enough: true },
    { cidr: '0.0.0.0/1', enough: false },
    { cidr: '::/1', enough: false },
    { cidr: '::/0', enough: false },
  ])('the check whether the range $cidr is large enough returns $enough', ({ cidr, enough }) => {
    expect(messagesOf(cidr)).toEqual(enough ? [] : [TOO_SMALL]);
  });
});

describe('the service cluster IP range', () => {
  const tooLarge = (bits: number, mask: number, index = '') =>
    `specified --service-cluster-ip-range${index} is too large; for ${bits}-bit addresses, the mask must be >= ${mask}`;

  test.each([
    {
      name: 'no range at all',
      text: [],
      messages: ['--service-cluster-ip-range must contain at least one valid cidr'],
    },
    { name: 'only a second one', text: ',10.0.0.0/16', messages: ['service-cluster-ip-range[0] is not a valid cidr'] },
    { name: 'two of IPv4', text: '10.0.0.0/16,11.0.0.0/16', messages: [SAME_FAMILY] },
    { name: 'two of IPv6', text: '2000::/108,3000::/108', messages: [SAME_FAMILY] },
    { name: 'IPv4 with 24 host bits', text: '10.0.0.0/8', messages: [tooLarge(32, 12)] },
    { name: 'IPv6 with 64 host bits', text: '2001:db8::/64', messages: [tooLarge(128, 108)] },
    { name: 'IPv6 with 116 host bits', text: '2001:db8::/12', messages: [tooLarge(128, 108)] },
    { name: 'a second with 64 host bits', text: '10.0.0.0/16,3000::/64', messages: [tooLarge(128, 108, '[1]')] },
    { name: 'a second with 80 host bits', text: '10.0.0.0/16,3000::/48', messages: [tooLarge(128, 108, '[1]')] },
    {
      name: 'three entries',
      text: '10.0.0.0/16,3000::/108,244.0.0.0/16',
      messages: ['--service-cluster-ip-range must not contain more than two entries'],
    },
    { name: 'one of IPv4', text: '10.0.0.0/16', messages: [] },
    { name: 'class E', text: '244.0.0.0/16', messages: [] },
    { name: 'IPv4 first', text: '10.0.0.0/16,3000::/108', messages: [] },
    { name: 'IPv6 first', text: '3000::/108,10.0.0.0/16', messages: [] },
  ])('the service range is checked where the table allocates: $name', ({ text, messages }) => {
    expect(messagesOf(text, 'table')).toEqual(messages);
  });

  test.each(['10.0.0.0/8', '2001:db8::/64', '2001:db8::/12', '10.0.0.0/16,3000::/48'])(
    'the range %s is accepted where the API servers allocate',
    (text) => {
      expect(messagesOf(text)).toEqual([]);
    },
  );

  test('a fault of a list names the wrong entry', () => {
    const faults = faultsOf(['10.0.0.0/24', '10.0.0.0']);
    expect(faults.map(({ path }) => path)).toEqual(['serviceClusterIPRange[1]']);
  });
});
