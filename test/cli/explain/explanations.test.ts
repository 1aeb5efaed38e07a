import { describe, expect, test } from '@jest/globals';
import { ERROR_CODES, OTHER_CODES } from '../../../cli/explain/explain-error-codes.ts';
import { FINDINGS } from '../../../cli/explain/explain-findings.ts';
import { EXPLANATIONS, explain, hintFor, nearestWord } from '../../../cli/explain/explanations.ts';
import { ALARMS } from '../../../deploy/alarm-list.ts';
import { parameterTable } from '../../../deploy/parameters.ts';
import { refused } from '../../../lib/allocator/refusal.ts';
import { FINDINGS_THAT_STAY, PASSING_FINDINGS } from '../../../lib/cluster/finding.ts';
import type { IPAddressRecord } from '../../../lib/cluster/kubernetes-objects.ts';
import type { EndpointsErrorCode } from '../../../lib/endpoints/endpoint-findings.ts';
import type { ClusterErrorCode } from '../../../lib/kubernetes/cluster-port.ts';
import { type AddressFault, addressFaults, MANAGED_BY_API_SERVERS } from '../../../lib/repair/address-faults.ts';
import { FindingList, type RepairErrorCode } from '../../../lib/repair/claims.ts';
import { clusterIpClaims } from '../../../lib/repair/cluster-ips.ts';
import { nodePortClaims } from '../../../lib/repair/node-ports.ts';
import type { DispatchErrorCode } from '../../../lib/runtime/deadline.ts';
import type { TableErrorCode } from '../../../lib/table/key-value-table.ts';
import { withAddresses, withNodePorts } from '../../repair/services.ts';
import { found } from '../../support/found.ts';
import { callKbctl } from '../../support/kbctl-in-process.ts';
import { expectPrinted, ran } from '../../support/kbctl-world.ts';
import { filesInRepository, readInRepository } from '../../support/repository.ts';

type PassErrorCode = TableErrorCode | ClusterErrorCode | RepairErrorCode | EndpointsErrorCode | DispatchErrorCode;
/**
 * Error codes without an explanation of their own: those that are explained as findings, and those of requests, whose messages
 * contain the resolution.
 */
type ExplainedElsewhere =
  | ('Full' | 'Unknown' | 'CorruptSnapshot' | 'NoLiveLease')
  | ('ChangedMeanwhile' | 'NotRegistered' | 'BadEvent' | 'BadEnvironment');
const codes = { ...ERROR_CODES, ...OTHER_CODES };
codes satisfies Readonly<Record<Exclude<PassErrorCode, ExplainedElsewhere>, unknown>>;

const known = (word: string) => found(explain(word));

test.each([
  ['Full', 'full'],
  ['DUPLICATE', 'duplicate'],
  [' outofrange ', 'outOfRange'],
  ['never ran', 'neverRan'],
  ['never-ran', 'neverRan'],
  ['overdue', 'late'],
  ['tls_failure', 'TlsFailure'],
  ['ipaddresswrongreference', 'leakedRecord'],
  ['TypeError', 'Unexpected'],
])('for the text %p, kbctl explain finds the term %s', (written, word) => {
  expect(known(written).word).toBe(word);
});

test('if a finding and an error code differ only in case, kbctl explain finds the finding, unless the text is spelled exactly like the code', () => {
  const kinds = ['Invalid', 'invalid', 'inValid'].map((word) => known(word).kind);
  expect(kinds).toEqual(['error code', 'finding', 'finding']);
});

test('for a misspelled term, kbctl explain suggests the most similar term; for a text that resembles no term, it suggests nothing', () => {
  const none = ['', 'something quite different', 'x'.repeat(10_000), '42!', '__proto__', 'constructor', 'toString'];
  const suggestions = { ClusterIPOutOfRage: 'ClusterIPOutOfRange', palsed: 'paused' };
  for (const [written, nearest] of Object.entries(suggestions)) {
    expect([explain(written), nearestWord(written)]).toEqual([undefined, nearest]);
  }
  for (const text of none) expect([text, explain(text), nearestWord(text)]).toEqual([text, undefined, undefined]);
});

test.each(EXPLANATIONS.map((one) => [one.word, one] as const))(
  'an explanation is complete, with at most three causes and four commands: %s',
  (_word, one) => {
    const { title, what, causes, resolution, hint } = one;
    expect(title).toMatch(/^[A-Z].*[^.]$/);
    for (const text of [what, ...causes, ...resolution.map((step) => step.text)])
      expect(text).toMatch(/^[A-Z`].*[.]$/s);
    expect(causes.length).toBeLessThanOrEqual(3);
    expect(resolution.length).toBeGreaterThan(0);
    expect(resolution.flatMap(({ commands }) => commands).length).toBeLessThanOrEqual(4);
    expect(hint ?? 'none').toMatch(/^[^\n]+[^.\n]$/);
  },
);

test('each setting of memory, size or concurrency that an explanation names is a parameter of the stack', () => {
  const named = JSON.stringify(EXPLANATIONS).matchAll(/`(\w+(?:Memory|Size|Concurrency))`/g);
  const parameters = parameterTable().join('\n');
  for (const [, name] of named) expect(parameters).toContain(`| \`${name}\` |`);
});

test('a command that makes an API server record an address again sets a random annotation, so that each run changes the Service', () => {
  const commands = JSON.stringify(EXPLANATIONS).match(/recorded-again=.{19}/g);
  expect(new Set(commands)).toEqual(new Set(['recorded-again=$RANDOM --overwrite']));
});

test('each term has only one explanation', () => {
  expect(new Set(EXPLANATIONS.map(({ word }) => word)).size).toBe(EXPLANATIONS.length);
});

/** The alarms that count findings, and the types of findings that each counts. */
const alarms = new Map<string, ReadonlySet<string>>([
  ['findings', FINDINGS_THAT_STAY],
  ['two-owners', new Set(['twoOwners'])],
]);

const ofFindings = EXPLANATIONS.filter(({ kind }) => kind === 'finding');
const critical = ofFindings.filter(({ severity }) => severity === 'action required').map(({ word }) => word);

test('the explanation of each finding that an alarm counts contains the name of that alarm', () => {
  const counted = [...alarms].flatMap(([alarm, types]) => [...types].map((type) => `${type}: ${alarm}`));
  expect(counted.length).toBeGreaterThan(3);
  const named = ofFindings.filter(({ alarm }) => alarms.has(alarm ?? ''));
  expect(named.map(({ word, alarm }) => `${word}: ${alarm}`).toSorted()).toEqual(counted.toSorted());
});

test('a finding is critical unless it may resolve automatically', () => {
  const passing = ofFindings.map(({ word }) => word).filter((word) => !critical.includes(word));
  expect(passing.toSorted()).toEqual([...PASSING_FINDINGS].toSorted());
});

test('exactly the critical findings have an alarm', () => {
  const ringing = ofFindings.filter(({ alarm }) => alarm !== undefined).map(({ word }) => word);
  expect(critical.toSorted()).toEqual(ringing.toSorted());
});

test('the log query of an alarm selects exactly the findings that the alarm counts', () => {
  for (const [alarm, types] of alarms) {
    const [, named = ''] = /\/"\(?([\w|]+)\)?: \//.exec(ALARMS[alarm]?.query ?? '') ?? [];
    expect(named.split('|').toSorted()).toEqual([...types].toSorted());
  }
});

/**
 * Returns one fault of each kind that the repair of IPAddresses reports: faults of IPAddresses, and a Service without an
 * IPAddress.
 */
function addressFaultsOfAll(): AddressFault[] {
  const service = withAddresses('s', '10.0.0.9');
  const record = (name: string, of: string): [string, IPAddressRecord] => {
    const parent = { group: '', resource: 'services', namespace: 'a', name: of };
    const labels = { family: 'IPv4', managedBy: MANAGED_BY_API_SERVERS };
    return [name, { name, uid: 'uid', resourceVersion: '1', createdAtMs: 0, ...labels, parent }];
  };
  const addresses = new Map([record('10.0.0.5', 'gone'), record('10.0.0.6', 's'), record('10.0.0.9', 's')]);
  const services = new Map([
    ['a/s', service],
    ...['a/t', 'a/u'].map((key) => [key, withAddresses(key.slice(2), '10.0.0.7')] as const),
  ]);
  return [...addressFaults({ services, addresses, isServed: () => true })];
}

const refusals = (['AlreadyAllocated', 'NotInRange', 'Full', 'NotReady'] as const).map((code) => refused(code, 'test'));
const written = ['notRecorded' as const, ...refusals].flatMap((result) => {
  const addresses = clusterIpClaims([{ spec: '10.0.0.0/24', claim: () => result }]);
  const found = new FindingList();
  addresses(withAddresses('s', 'x', 'fd00::1', '10.0.0.1'), found);
  const ports = nodePortClaims([{ spec: '2-3', claim: () => result }]);
  ports(withNodePorts('s', 1), found);
  return found.listed.map(({ type, event }) => `${event?.reason}: ${type}`);
});

test('kbctl explain knows exactly the event reasons that passes write, and explains the finding of each reason', () => {
  const explained = EXPLANATIONS.flatMap(({ word, reasons }) => reasons.map((reason) => `${reason}: ${word}`));
  const ofRecords = addressFaultsOfAll().map(({ finding, type }) => `${finding?.().event?.reason}: ${type}`);
  expect(explained.toSorted()).toEqual([...new Set([...written, ...ofRecords])].toSorted());
  expect(known('ClusterIPNotAllocated').word).toBe('notRecorded');
});

test('kbctl explain finds the type of a finding by the message or the event of the finding', () => {
  for (const { finding, type } of addressFaultsOfAll()) {
    const { message, event } = finding?.() ?? {};
    for (const text of [message, event?.note]) expect([text, known(text ?? '').word]).toEqual([text, type]);
  }
});

test.each([
  ['the cluster IP [IPv4]:10.0.0.1 for service s/a is not allocated; repairing', 'repair'],
  ['IPAddress 10.0.0.5 appears to have been modified, not referencing a Service &P{}: cleaning up', 'leakedRecord'],
  ['twoOwners: the endpoints of default/kubernetes have two owners', 'twoOwners'],
  ['3m  Warning  IPAddressNotAllocated  ipaddress/10.0.0.5  leaked', 'leakedRecord'],
  ['failed: Forbidden: https://10.0.0.1:6443 answered 403', 'Forbidden'],
  [
    'Service "x" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.5"]: failed to allocate IP 10.0.0.5: provided IP is already allocated',
    'AlreadyAllocated',
  ],
])('a pasted message is explained: %s', (text, word) => {
  expect(known(text).word).toBe(word);
});

describe('a hint', () => {
  const cluster = { name: 'prod-1' };

  const port = { item: '30080', service: 'shop/web' };
  test.each([
    [
      'duplicate',
      { item: '10.0.0.5', service: 'shop/web' },
      'kbctl show ip prod-1 10.0.0.5 lists both Services: recreate the newer one without clusterIP',
    ],
    ['duplicate', port, 'kbctl show port prod-1 30080 lists both Services: recreate the newer one without nodePort'],
    [
      'heldByAnother',
      port,
      'kbctl show port prod-1 30080 shows the owner; set it as label kube-bootstrap-controller/hold-owner of shop/web, or recreate the Service without nodePort',
    ],
    ['of a later version', {}, 'kbctl doctor prod-1'],
    ['late', {}, 'check whether the functions run: kbctl doctor prod-1'],
  ])('the hint for type "%s" is built from the cluster name and from %j', (type, facts, line) => {
    expect(hintFor(type, cluster, facts)).toBe(line);
  });

  test.each(Object.keys(FINDINGS))('a hint is one line without placeholders if all names are known: %s', (type) => {
    const line = hintFor(type, cluster, { item: '10.0.0.5', service: 'shop/web' });
    expect(line).not.toMatch(/[<>\n]/);
  });

  test.each(['$(reboot)', 'a; reboot', "a'b", '-rf', 'a b', 'a\nb', 'a`b`', '<item>', '\u202Eabc', ''])(
    'a hint keeps the placeholder for a name that is not safe in a shell: %j',
    (name) => {
      const line = hintFor('outOfRange', { name }, { item: name, service: `${name}/${name}` });
      expect(line).toContain('otherwise recreate <namespace>/<name> without clusterIP');
    },
  );
});

test('docs/findings.md links to every page of docs/tasks', () => {
  const links = [...readInRepository('docs/findings.md').matchAll(/\]\((tasks\/[\w-]+\.md)\)/g)].map(
    ([, file]) => `docs/${file}`,
  );
  const pages = filesInRepository('docs/tasks').filter((file) => file !== 'docs/tasks/README.md');
  expect([...new Set(links)].sort()).toEqual(pages.sort());
});

const kbctlExplain = (...words: string[]) => callKbctl(['explain', ...words], { cwd: '.', env: {} });

const ofFinding = [/^duplicate \(finding, action required\): /, /Causes\n- [\s\S]*Resolution\n1\. /];
const command = 'npm run deploy -- --param tickConcurrency=40';
const ofAlarm = ['clusters-overdue (alarm, page)', command, 'With kbctl run: kbctl doctor <cluster>'];
test.each([
  ['the meaning, causes and resolution of a finding', 'ClusterIPAlreadyAllocated', ofFinding],
  ['the severity, the impact and the first commands of an alarm', 'clusters-overdue', ofAlarm],
])('kbctl explain prints %s', async (_, word, parts) => {
  expectPrinted(await kbctlExplain(word), 0, ...parts);
});

test('for an unknown term, the error of kbctl explain suggests the nearest term', async () => {
  const refusal = 'error: "duplicat" is not a known word; did you mean duplicate?\n';
  expect(await kbctlExplain('duplicat')).toEqual(ran(2, '', refusal));
});

test('kbctl explain knows each alarm by its name in CloudWatch, and lists alarms and other terms', async () => {
  for (const [name, { section = name }] of Object.entries(ALARMS)) {
    const { stdout } = await kbctlExplain(`kube-bootstrap-controller-prod-${name}`);
    expect(stdout).toMatch(new RegExp(`^${section} \\(alarm, `));
  }
  const { stdout } = await kbctlExplain('-o', 'json');
  expect(JSON.parse(stdout).items).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ alarm: 'two-owners', severity: 'page' }),
      expect.objectContaining({ word: 'leak', wordKind: 'finding' }),
    ]),
  );
});
