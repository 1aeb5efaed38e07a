import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { ALARMS } from '../../deploy/alarms.ts';
import { answerJsonSchema } from '../../lib/allocate/json-schemas.ts';
import { AllocatorError, type AllocatorErrorCode } from '../../lib/allocator/errors.ts';
import { FINDINGS_THAT_STAY, type FindingType } from '../../lib/cluster/finding.ts';
import type { EndpointsErrorCode } from '../../lib/endpoints/endpoint-findings.ts';
import type { ClusterErrorCode } from '../../lib/kubernetes/cluster-port.ts';
import { clusterIpWalk } from '../../lib/repair/cluster-ips.ts';
import { nodePortWalk } from '../../lib/repair/node-ports.ts';
import type { RepairErrorCode } from '../../lib/repair/walk.ts';
import type { DispatchErrorCode } from '../../lib/runtime/errors.ts';
import type { Attention, LoopStatus } from '../../lib/status/cluster-status.ts';
import type { Explanation } from '../../lib/status/explanation.ts';
import { CRITICAL_FINDINGS, EXPLANATIONS, explain, findingHint, stateHint } from '../../lib/status/explanations.ts';
import type { TableErrorCode } from '../../lib/table/errors.ts';
import { findingsPage } from '../../tools/findings-page.ts';
import { withAddresses, withNodePorts } from '../repair/services.ts';

const repository = path.join(import.meta.dirname, '..', '..');
const read = (file: string) => readFileSync(path.join(repository, file), 'utf8');

/** The compiler holds these lists and the types together. */
const FINDING_TYPES = Object.keys({
  leak: true,
  repair: true,
  full: true,
  outOfRange: true,
  duplicate: true,
  unknown: true,
  invalid: true,
  mayHaveLeaked: true,
  nothingFree: true,
  heldByAnother: true,
  twoOwners: true,
  oddProbe: true,
  noLiveLease: true,
  foreignSlice: true,
  corruptSnapshot: true,
  other: true,
} satisfies Record<FindingType, true>);

const ERROR_CODES = Object.keys({
  TableMissing: true,
  AccessDenied: true,
  Throttled: true,
  Unavailable: true,
  DeadlineExceeded: true,
  ItemTooLarge: true,
  SchemaTooNew: true,
  Corrupt: true,
  Contended: true,
  OwnedElsewhere: true,
  ChangedMeanwhile: true,
  Unexpected: true,
  Unauthorized: true,
  Forbidden: true,
  TlsFailure: true,
  MalformedReply: true,
  ReplyTooLarge: true,
  Rejected: true,
  BadKubeconfig: true,
  Full: true,
  Unknown: true,
  CorruptSnapshot: true,
  BadRange: true,
  OlderSpec: true,
  NoLiveLease: true,
  LeaseNotFound: true,
  Conflict: true,
  AlreadyExists: true,
  Invalid: true,
  NamespaceUnavailable: true,
  BadEvent: true,
  BadEnvironment: true,
  NotRegistered: true,
} satisfies Record<TableErrorCode | ClusterErrorCode | RepairErrorCode | EndpointsErrorCode | DispatchErrorCode, true>);

/** Of allocators. What does not parse is told as the error of who read it. */
const ALLOCATOR_CODES = Object.keys({
  Full: true,
  AlreadyAllocated: true,
  NotInRange: true,
  MismatchedRange: true,
  NotReady: true,
  BadHold: true,
  NotHeld: true,
  HoldsFull: true,
  TooManyUnclaimed: true,
} satisfies Record<Exclude<AllocatorErrorCode, 'Unparsable'>, true>);

/** Of requests, as the schema of their answers names them. */
function refusalCodes(): readonly string[] {
  const { error } = answerJsonSchema()['properties'] as Record<string, { readonly description: string }>;
  return error?.description.split(': ')[1]?.match(/[A-Z]\w+/g) ?? [];
}

/** What is known of a word, which must be something. */
function known(word: string): Explanation {
  const found = explain(word);
  if (!('title' in found)) throw new Error(`nothing is known of ${word}`);
  return found;
}

describe('a word', () => {
  test.each(FINDING_TYPES)('of a finding is explained: %s', (type) => {
    expect(known(type)).toMatchObject({ word: type, kind: 'finding' });
  });

  /** These end a pass as a finding, and are explained there. */
  const asFinding: readonly string[] = ['Full', 'Unknown', 'CorruptSnapshot', 'NoLiveLease'];
  test.each(ERROR_CODES)('of an error is explained: %s', (code) => {
    const word = asFinding.includes(code) ? `${code.charAt(0).toLowerCase()}${code.slice(1)}` : code;
    expect(known(code)).toMatchObject({ word, kind: word === code ? 'error code' : 'finding' });
  });

  test.each([...new Set([...ALLOCATOR_CODES, ...refusalCodes()])])('of a refusal is explained: %s', (code) => {
    const word = asFinding.includes(code) ? code.toLowerCase() : code;
    expect(known(code)).toMatchObject({ word, kind: word === code ? 'error code' : 'finding' });
  });

  const states: readonly (LoopStatus['state'] | Attention['word'])[] = [
    'late',
    'overdue',
    'failing',
    'paused',
    'neverRan',
    'observing',
    'unreadable',
    'almostFull',
    'ranOut',
    'withdrawn',
    'neverSeen',
  ];
  test.each(states)('of a state is explained: %s', (state) => {
    expect(known(state)).toMatchObject({ word: state, kind: 'state' });
  });

  test.each([
    ['DUPLICATE', 'duplicate'],
    [' outofrange ', 'outOfRange'],
    ['may have leaked', 'mayHaveLeaked'],
    ['never ran', 'neverRan'],
    ['never-ran', 'neverRan'],
    ['only observing for another stack', 'observing'],
    ['tls_failure', 'TlsFailure'],
    ['clusteripnotallocated', 'repair'],
    ['TypeError', 'Unexpected'],
  ])('may be written %p for %s', (written, word) => {
    expect(known(written).word).toBe(word);
  });

  test('that differs from another in case alone is the finding, unless it is written as the error code is', () => {
    expect(known('Invalid').kind).toBe('error code');
    expect(['invalid', 'INVALID', 'inValid'].map((word) => known(word).kind)).toEqual([
      'finding',
      'finding',
      'finding',
    ]);
  });

  test.each([
    ['duplicat', 'duplicate'],
    ['ClusterIPOutOfRage', 'ClusterIPOutOfRange'],
    ['Forbiden', 'Forbidden'],
    ['twoOwner', 'twoOwners'],
    ['palsed', 'paused'],
  ])('that is misspelt is told the nearest: %s', (written, nearest) => {
    expect(explain(written)).toEqual({ nearest });
  });

  test.each(['', 'something quite different', 'x'.repeat(10_000), '42!'])('that is none is told nothing', (word) => {
    expect(explain(word)).toEqual({});
  });

  test.each(['__proto__', 'constructor', 'toString'])('of every object is none of these: %s', (word) => {
    expect(explain(word)).not.toHaveProperty('title');
  });
});

describe('an explanation', () => {
  test.each(EXPLANATIONS.map((one) => [one.word, one] as const))(
    'is whole, with three causes and four commands at most: %s',
    (_word, one) => {
      const { title, what, causes, resolution, hint } = one;
      expect(title).toMatch(/^[A-Z].*[^.]$/);
      for (const text of [what, ...causes, ...resolution.map((step) => step.text)])
        expect(text).toMatch(/^[A-Z`].*[.]$/s);
      expect(causes.length).toBeLessThanOrEqual(3);
      expect(resolution.length).toBeGreaterThan(0);
      expect(resolution.flatMap(({ commands }) => commands).length).toBeLessThanOrEqual(4);
      expect(hint).toMatch(/^[^\n]+[^.\n]$/);
    },
  );

  test('has a word of its own', () => {
    expect(new Set(EXPLANATIONS.map(({ word }) => word)).size).toBe(EXPLANATIONS.length);
  });

  /** The second word where there is one. */
  const COMMANDS =
    /^kbctl (status|explain|doctor|logs-query|resume|deregister|--version|get (leases|ranges|runs|findings|holds)|run-once (cluster-ip|node-port)-repair|show (ip|port)|release (ip|port)|cluster (apply|get|list|set-mode|take-over))( |$)/;
  const ofKbctl = EXPLANATIONS.flatMap(({ resolution }) => resolution.flatMap(({ commands }) => commands)).filter(
    (command) => command.startsWith('kbctl'),
  );
  test.each([...new Set(ofKbctl)])('names a command of kbctl: %s', (command) => {
    expect(command).toMatch(COMMANDS);
  });

  test('names alarms that there are', () => {
    for (const { alarm } of EXPLANATIONS) if (alarm !== undefined) expect([...alarms.keys()]).toContain(alarm);
  });
});

/** Each alarm, with the types of findings that it is about. */
const alarms = new Map<string, ReadonlySet<string>>([
  ...Object.keys(ALARMS).map((name) => [name, new Set<string>()] as const),
  ['findings', FINDINGS_THAT_STAY],
  ['two-owners', new Set(['twoOwners'])],
]);

describe('a finding for people', () => {
  const findings = EXPLANATIONS.filter(({ kind }) => kind === 'finding');

  test('is each that an alarm counts, and its explanation names that alarm', () => {
    const counted = [...alarms].flatMap(([alarm, types]) => [...types].map((type) => `${type}: ${alarm}`));
    expect(counted.length).toBeGreaterThan(3);
    const named = findings.filter(({ alarm }) => (alarms.get(alarm ?? '')?.size ?? 0) > 0);
    expect(named.map(({ word, alarm }) => `${word}: ${alarm}`).toSorted()).toEqual(counted.toSorted());
    for (const { word } of named) expect(CRITICAL_FINDINGS).toContain(word);
  });

  test('is each that another alarm rings for, and none that none does, but for what the status alone tells', () => {
    const ringing = findings.filter(({ alarm }) => alarm !== undefined).map(({ word }) => word);
    const statusAlone = alarms.get('findings')?.has('heldByAnother') ? [] : ['heldByAnother'];
    expect([...CRITICAL_FINDINGS].toSorted()).toEqual([...ringing, ...statusAlone].toSorted());
  });
});

describe("the original's reasons", () => {
  const refusals = (['AlreadyAllocated', 'NotInRange', 'Full', 'NotReady'] as const).map(
    (code) => new AllocatorError(code, 'test'),
  );
  const written = ['notRecorded' as const, ...refusals].flatMap((result) => {
    const addresses = clusterIpWalk([{ spec: '10.0.0.0/24', claim: () => result }]);
    addresses.visit(withAddresses('s', 'x', 'fd00::1', '10.0.0.1'));
    const ports = nodePortWalk([{ spec: '2-3', claim: () => result }]);
    ports.visit(withNodePorts('s', 1));
    const findings = [...addresses.findings.listed, ...ports.findings.listed];
    return findings.map(({ type, event }) => ({ type, reason: event?.reason ?? '' }));
  });

  test.each(written)('$reason is explained as $type', ({ type, reason }) => {
    expect(known(reason).word).toBe(type);
  });

  test('are those of the events that are written, and no other', () => {
    const told = EXPLANATIONS.flatMap(({ reasons }) => reasons);
    expect([...new Set(told)].toSorted()).toEqual([...new Set(written.map(({ reason }) => reason))].toSorted());
  });
});

describe('the line that says how to mend it', () => {
  const cluster = { name: 'prod-1' };

  test.each([
    {
      finding: { type: 'duplicate', item: '10.0.0.5', service: 'shop/web' },
      line: 'recreate shop/web without clusterIP, if it is the newer of the Services with 10.0.0.5',
    },
    {
      finding: { type: 'duplicate', item: '30080', service: 'shop/web' },
      line: 'recreate shop/web without nodePort, if it is the newer of the Services with 30080',
    },
    {
      finding: { type: 'mayHaveLeaked', item: 'fd00::5' },
      line: 'no action: a Service claims it, or the third pass frees it; kbctl show ip prod-1 fd00::5 shows its strikes',
    },
    {
      finding: { type: 'heldByAnother', item: '30080', service: 'shop/web' },
      line: 'kbctl show port prod-1 30080 shows the owner; set it as label kube-bootstrap-controller/hold-owner of shop/web, or recreate the Service without nodePort',
    },
    {
      finding: { type: 'foreignSlice', item: 'mine' },
      line: 'kubectl -n default delete endpointslice mine, if it is not needed',
    },
    { finding: { type: 'of a later version' }, line: 'kbctl doctor prod-1' },
  ])('names the very thing: $finding.type $finding.item', ({ finding, line }) => {
    expect(findingHint(finding, cluster)).toBe(line);
  });

  test.each(FINDING_TYPES)('is one line that names all, when all is known: %s', (type) => {
    const line = findingHint({ type, item: '10.0.0.5', service: 'shop/web' }, cluster);
    expect(line).not.toMatch(/[<>\n]/);
  });

  test.each(['$(reboot)', 'a; reboot', "a'b", '-rf', 'a b', 'a\nb', 'a`b`', '<item>', '\u202Eabc', ''])(
    'never has for the shell what a cluster made up: %j',
    (name) => {
      const line = findingHint({ type: 'duplicate', item: name, service: `${name}/${name}` }, cluster);
      expect(line).toBe(
        'recreate <namespace>/<name> without clusterIP, if it is the newer of the Services with <item>',
      );
    },
  );

  test('of a state and of an error code names the cluster', () => {
    expect(stateHint('late', cluster)).toBe('check whether the functions run: kbctl doctor prod-1');
    expect(stateHint('Unavailable', cluster)).toBe('kbctl doctor prod-1 shows what cannot be reached');
  });
});

describe('docs/findings.md', () => {
  test('says what the explanations say: npm run docs writes it', () => {
    expect(read('docs/findings.md')).toBe(findingsPage());
  });

  test('leads to each page of docs/tasks that is there, and to no other', () => {
    const links = [...findingsPage().matchAll(/\]\(tasks\/([\w-]+\.md)\)/g)].map(([, file = '']) => file);
    const pages = readdirSync(path.join(repository, 'docs/tasks')).filter((file) => file !== 'README.md');
    expect([...new Set(links)].sort()).toEqual(pages.sort());
  });

  test('has a heading for each of its links', () => {
    const page = findingsPage();
    const headings = [...page.matchAll(/^### (.+)$/gm)].map(([, title = '']) =>
      title.toLowerCase().replace(/[()]/g, '').replaceAll(' ', '-'),
    );
    const links = [...page.matchAll(/\]\(#([\w-]+)\)/g)].map(([, anchor]) => anchor);
    expect(links.toSorted()).toEqual(headings.toSorted());
    expect(new Set(headings).size).toBe(EXPLANATIONS.length);
  });
});
