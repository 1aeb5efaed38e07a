import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseClusterSpec } from '../../lib/spec/parse-cluster-spec.ts';
import { SPEC_DEFAULTS } from '../../lib/spec/spec-shape.ts';
import { validSpec } from './spec-support.ts';

const example = readFileSync(join(import.meta.dirname, '../../cluster.example.yml'), 'utf8');

const head = `name: prod-1
mode: observe
kubeconfig: { file: ./admin.kubeconfig }
`;

/** The faults as `line:column path: message`. */
function faultsIn(text: string): string[] {
  const result = parseClusterSpec(text);
  if (!('faults' in result)) return [];
  return result.faults.map(({ position, path, message }) => {
    const place = position === undefined ? '-' : `${position.line}:${position.column}`;
    return `${place} ${path}: ${message}`;
  });
}

function specIn(text: string): unknown {
  const result = parseClusterSpec(text);
  return 'spec' in result ? result.spec : result.faults;
}

describe('the example', () => {
  test('is a spec', () => {
    expect(faultsIn(example)).toEqual([]);
  });

  test('shows the defaults in its comments', () => {
    const said = example
      .split('\n')
      .filter((line) => /^# ( +)?[a-zA-Z-]+:( |$)/.test(line))
      .map((line) => line.slice(2))
      .filter((line) => !/^(observe|table|yaml-language-server):/.test(line));
    const shown = parseClusterSpec(`${head}apiServers: [{ address: 10.0.0.1 }]\n${said.join('\n')}\n`);
    const standard = parseClusterSpec(`${head}apiServers: [{ address: 10.0.0.1 }]\n`);
    expect(said.length).toBeGreaterThan(Object.keys(SPEC_DEFAULTS).length);
    expect(shown).toEqual(standard);
  });
});

describe('a YAML file', () => {
  test('means the same as the value that it stands for', () => {
    const servers = [{ address: '10.0.0.1' }, { host: 'api.example.com' }];
    const value = { name: 'prod-1', mode: 'observe', kubeconfig: { file: './admin.kubeconfig' }, apiServers: servers };
    expect(specIn(JSON.stringify(value))).toEqual(validSpec(value));
  });

  test('may contain a port in hexadecimal, a number with an exponent, and text in quotes', () => {
    const text = `${head}apiServers: [{ address: "10.0.0.1" }]\nservice: { port: 0x1BB }\nmaxEventsPerPass: 1e2\n`;
    expect(specIn(text)).toMatchObject({ service: { port: 443 }, maxEventsPerPass: 100 });
  });

  test('may repeat a part by its anchor', () => {
    const ports = '[{ name: konnectivity, port: 8132 }]';
    const text = `${head}apiServers: [{ address: 10.0.0.1 }]\nendpoints: { extraPorts: &ports ${ports} }\nservice: { extraPorts: *ports }\n`;
    expect(specIn(text)).toMatchObject({
      endpoints: { extraPorts: [{ name: 'konnectivity', protocol: 'TCP', port: 8132 }] },
      service: { extraPorts: [{ name: 'konnectivity', protocol: 'TCP', port: 8132, targetPort: 8132 }] },
    });
  });

  test('may begin with a byte order mark and have Windows line ends', () => {
    const text = `\uFEFF${head}apiServers: [{ address: 10.0.0.1 }]\n`.replaceAll('\n', '\r\n');
    expect(faultsIn(text)).toEqual([]);
  });

  test.each([
    { name: 'that is empty', text: '', fault: '1:1 : is empty' },
    { name: 'that is all comments', text: '# name: x\n', fault: '1:1 : is empty' },
    { name: 'that is a list', text: '- name: x\n', fault: '1:1 : is a list' },
    { name: 'that is text', text: 'name = x\n', fault: '1:1 : is "name = x"' },
    {
      name: 'with a key twice',
      text: 'name: a\nmode: observe\nname: b\n',
      fault: '3:1 : is not the YAML of a cluster spec: Map keys must be unique',
    },
    {
      name: 'with tabs',
      text: 'kubeconfig:\n\tfile: x\n',
      fault: '2:1 : is not the YAML of a cluster spec: Tabs are not allowed as indentation',
    },
    {
      name: 'with two documents',
      text: 'name: a\n---\nname: b\n',
      fault: '2:1 : is not the YAML of a cluster spec: A second document begins here',
    },
    {
      name: 'with a tag',
      text: 'name: !secret x\n',
      fault: '1:7 : is not the YAML of a cluster spec: Unresolved tag: !secret',
    },
    {
      name: 'with a key that is a list',
      text: '? [a]\n: 1\n',
      fault: '1:3 : is not the YAML of a cluster spec: With stringKeys, all keys must be strings',
    },
    {
      name: 'with an alias of nothing',
      text: 'name: *nobody\n',
      fault:
        '- : is not the YAML of a cluster spec: Unresolved alias (the anchor must be set before the alias): nobody',
    },
    {
      name: 'that ends in the middle',
      text: 'kubeconfig: { file: x\n',
      fault:
        '2:1 : is not the YAML of a cluster spec: Flow map in block collection must be sufficiently indented and end with a }',
    },
  ])('$name is a fault', ({ text, fault }) => {
    expect(faultsIn(text)).toEqual([fault]);
  });

  test('whose aliases multiply is a fault', () => {
    const row = (name: string, of: string) =>
      `${name}: &${name} [${Array.from({ length: 10 }, () => of).join(', ')}]\n`;
    const text = row('a', '1') + row('b', '*a') + row('c', '*b') + row('d', '*c');
    expect(faultsIn(text)).toEqual([expect.stringContaining('Excessive alias count')]);
  });

  test('that is nested beyond reading is one fault', () => {
    expect(faultsIn('['.repeat(50_000)).length).toBeLessThan(3);
    expect(faultsIn('['.repeat(50_000))).not.toEqual([]);
  });

  test('that holds itself is a fault', () => {
    expect(faultsIn(`${head}apiServers: &all [*all]\n`)).toEqual(['4:19 apiServers[0]: is a list']);
  });

  test('has the place of each fault, in the order of the file', () => {
    const text = `name: Prod
kubeconfig:
  file: 7
apiServers:
  - address: 10.0.0.1
  - adress: 10.0.0.2
    probe:
      url: ftp://10.0.0.2
endpoints: { leaseSeconds: 1.5 }
service:
`;
    expect(faultsIn(text)).toEqual([
      '1:1 mode: is required',
      '1:1 name: "Prod" is no cluster name',
      '3:3 kubeconfig.file: is 7',
      '6:5 apiServers[1].adress: is not a field',
      '6:5 apiServers[1]: has neither an address nor a host',
      '8:7 apiServers[1].probe.url: "ftp://10.0.0.2" is no http or https URL',
      '9:14 endpoints.leaseSeconds: is 1.5',
      '10:1 service: is empty',
    ]);
  });

  test.each([
    { name: 'a word for a mode', text: 'mode: on', fault: 'mode: is "on"' },
    {
      name: 'too many digits',
      text: 'maxEventsPerPass: 99999999999999999999',
      fault: 'maxEventsPerPass: is 100000000000000000000',
    },
    { name: 'infinity', text: 'maxEventsPerPass: .inf', fault: 'maxEventsPerPass: is Infinity' },
    { name: 'no number', text: 'maxEventsPerPass: .nan', fault: 'maxEventsPerPass: is NaN' },
    { name: 'a boolean of YAML 1.1', text: 'service: { reconcile: yes }', fault: 'service.reconcile: is "yes"' },
    { name: 'a prototype', text: '__proto__: { mode: enforce }', fault: '__proto__: is not a field' },
    { name: 'a merge key', text: '<<: { mode: enforce }', fault: '["<<"]: is not a field' },
    { name: 'a number for a name', text: 'systemNamespaces: [1.0]', fault: 'systemNamespaces[0]: is 1' },
  ])('with $name has one fault', ({ text, fault }) => {
    const mode = text.startsWith('mode') ? '' : 'mode: observe\n';
    const whole = `name: prod-1\n${mode}kubeconfig: { file: x }\napiServers: [{ address: 10.0.0.1 }]\n${text}\n`;
    expect(faultsIn(whole)).toEqual([expect.stringContaining(fault)]);
  });

  test('of any text never throws', () => {
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

  test('of any JSON value is read as that value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), (value) => {
        expect(faultsIn(JSON.stringify(value)).length).toBeGreaterThan(0);
      }),
    );
  });
});
