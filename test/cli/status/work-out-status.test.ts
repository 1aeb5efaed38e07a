import { describe, expect, test } from '@jest/globals';
import type { ClusterStatus, LoopStatus } from '../../../cli/status/cluster-status.ts';
import type { StatusInputs } from '../../../cli/status/read-inputs.ts';
import { workOutStatus } from '../../../cli/status/work-out-status.ts';
import type { FindingType } from '../../../lib/cluster/finding.ts';
import type { Loop } from '../../../lib/spec/cluster-spec.ts';
import type { ListedCluster } from '../../../lib/table/clusters.ts';
import type { RunRecord } from '../../../lib/table/run-records.ts';
import { defined } from '../../../lib/util/values.ts';
import { aHost, aServer } from '../../support/a-cluster-spec.ts';
import { aCluster, aLease, inputs, MINUTE_MS, NOW_MS, recordsWith, statusOf } from '../../support/a-fleet-status.ts';
import { aRunRecord, runRecords } from '../../support/run-records.ts';

const NOT_LONG_AGO_MS = NOW_MS - 10_000;
const ERROR = { code: 'Unavailable', message: 'the API server\ndid not answer' };
const failed = (startedAtMs: number, failuresInARow: number) =>
  aRunRecord(startedAtMs, { outcome: 'failed', failuresInARow, error: ERROR, lastSuccessAtMs: startedAtMs - 1 });

function words({ attention }: ClusterStatus): string[] {
  return attention.map(({ level, word }) => `${level}: ${word}`);
}

function loopOf(status: ClusterStatus, loop: Loop): LoopStatus | undefined {
  return status.loops.find((one) => one.loop === loop);
}

test('a healthy cluster is shown with its spec, owner and loops', () => {
  const paused = { untilMs: NOW_MS, reason: 'over', by: 'me' };
  const owner = { stack: 'prod' };
  const writes = { wouldWrite: ['create Namespace kube-public'], lastChange: { atMs: 1, changes: ['created it'] } };
  const records = runRecords(NOT_LONG_AGO_MS, writes);
  const status = statusOf({ cluster: aCluster({}, { paused, owner }), records });
  const spec = { name: 'demo', mode: 'enforce', allocator: 'apiserver', generation: 3, owner };
  expect(status).toMatchObject({ ...spec, health: 'good', attention: [], findings: [], unreadable: [] });
  expect(status.paused).toBeUndefined();
  expect(status.loops.map(({ loop, state, intervalSeconds }) => [loop, state, intervalSeconds])).toEqual([
    ['system-namespaces', 'good', 60],
    ['kubernetes-service', 'good', 10],
    ['cluster-ip-repair', 'good', 180],
    ['node-port-repair', 'good', 180],
  ]);
  const lastPass = { startedAtMs: NOT_LONG_AGO_MS, outcome: 'succeeded', mode: 'enforce', findings: 0 };
  expect(status.loops[0]).toMatchObject({ lastPass, ...writes });
});

const observed = runRecords(NOT_LONG_AGO_MS, { mode: 'observe' });
const unpublished = { ...aCluster().spec.endpoints, reconciler: 'none' } as const;
test.each([
  ['only observes', { cluster: aCluster({ mode: 'observe' }), records: observed }],
  ['belongs to another stack', { cluster: aCluster({}, { owner: { stack: 'another' } }) }],
  ['publishes nothing', { cluster: aCluster({ endpoints: unpublished }), leases: [] }],
] as const)('a cluster is healthy even if it %s', (_, given) => {
  expect(statusOf(given)).toMatchObject({ health: 'good', attention: [] });
});

const minutesAgoMs = (minutes: number) => NOW_MS - minutes * MINUTE_MS;
test.each([
  ['that succeeded is good', aRunRecord(minutesAgoMs(10)), 'good', 'good'],
  ['that last ran three intervals and a minute ago is late', aRunRecord(minutesAgoMs(10) - 1), 'late', 'unhealthy'],
  ['that failed once is only a warning', failed(NOT_LONG_AGO_MS, 1), 'failing', 'warning'],
  ['that failed three times needs attention', failed(NOT_LONG_AGO_MS, 3), 'failing', 'unhealthy'],
  ['that failed and was not run again is late', failed(minutesAgoMs(20), 1), 'late', 'unhealthy'],
  ['that never ran although it was due needs attention', undefined, 'neverRan', 'unhealthy'],
] as const)('a loop %s', (_, record, state, health) => {
  const { 'cluster-ip-repair': _replaced, ...others } = runRecords(NOT_LONG_AGO_MS);
  const status = statusOf({ records: { ...others, ...(record && { 'cluster-ip-repair': record }) } });
  expect([loopOf(status, 'cluster-ip-repair')?.state, status.health]).toEqual([state, health]);
  expect(words(status)).toEqual(health === 'good' ? [] : [`${health}: ${state}`]);
});

test('a late loop is shown with its last run and its interval', () => {
  const records = { ...runRecords(NOT_LONG_AGO_MS), 'node-port-repair': aRunRecord(minutesAgoMs(120)) };
  const message = 'node-port-repair ran 120m ago; it is due every 3m';
  const next = expect.stringContaining('kbctl doctor demo');
  expect(statusOf({ records }).attention).toMatchObject([{ message, next }]);
});

test('a failing loop is shown with its number of failures and the error, in one line', () => {
  const records = { ...runRecords(NOT_LONG_AGO_MS), 'cluster-ip-repair': failed(NOT_LONG_AGO_MS, 2) };
  const status = statusOf({ records });
  expect(status.attention).toMatchObject([
    { message: 'cluster-ip-repair failed 2 times in a row: Unavailable: the API server did not answer' },
  ]);
  expect(loopOf(status, 'cluster-ip-repair')).toMatchObject({ failuresInARow: 2, lastPass: { error: ERROR } });
});

test('failed loops are shown as one problem if they fail because of the same API server, or if no server is recorded and their errors differ only in quoted texts', () => {
  const failedWith = (error: RunRecord['error'], failuresInARow = 1) =>
    aRunRecord(NOT_LONG_AGO_MS, { ...failed(NOT_LONG_AGO_MS, failuresInARow), ...defined({ error }) });
  const silent = (purpose: string) => ({ code: 'Unavailable', message: `no answer to "${purpose}".` });
  const server = 'https://192.0.2.1';
  const records = {
    'system-namespaces': failedWith({ ...silent('list Namespaces'), server }),
    'kubernetes-service': failedWith({ code: 'DeadlineExceeded', message: 'too late', server }, 7),
    'cluster-ip-repair': failedWith(silent('list servicecidrs')),
    'node-port-repair': failedWith(silent('list services')),
  };
  expect(statusOf({ records }).attention.map(({ level, message }) => [level, message])).toEqual([
    [
      'unhealthy',
      'system-namespaces, kubernetes-service failed up to 7 times in a row: Unavailable: no answer to "list Namespaces".',
    ],
    ['warning', 'cluster-ip-repair, node-port-repair failed: Unavailable: no answer to "list servicecidrs".'],
  ]);
});

test('the last refresh of a lease by a probe is shown as the last run of kubernetes-service', () => {
  const records = runRecords(NOW_MS - 50_000);
  const at = (leases: StatusInputs['leases']) =>
    loopOf(statusOf({ records, leases }), 'kubernetes-service')?.lastRanAtMs;

  expect(at([aLease()])).toBe(NOW_MS - 5_000);
  expect(at([aLease({ source: 'agent' })])).toBeUndefined();
  expect(at([])).toBeUndefined();
  expect(loopOf(statusOf({ records }), 'system-namespaces')?.lastRanAtMs).toBeUndefined();
});

test('the status of a loop without a pass contains the time at which its first pass is due', () => {
  const shown = (rest: Partial<ListedCluster>, nowMs = NOW_MS) => {
    const cluster = aCluster({}, { writtenAtMs: NOW_MS, ...rest });
    const status = workOutStatus(inputs({ cluster, records: {}, leases: [] }), nowMs);
    return status.loops.map(
      ({ firstPassAtMs }) => firstPassAtMs && new Date(firstPassAtMs).toISOString().slice(11, 19),
    );
  };
  // It is 06:15:39. The repairs have a tick every three minutes.
  expect(shown({ owner: { stack: 'prod' } })).toEqual(['06:16:00', '06:16:00', '06:18:00', '06:18:00']);
  expect(shown({})).toEqual(['06:17:00', '06:16:00', '06:18:00', '06:18:00']);
  expect(shown({}, NOW_MS + 100 * MINUTE_MS)).toEqual([undefined, undefined, undefined, undefined]);
  const paused = { untilMs: NOW_MS + MINUTE_MS, reason: 'an upgrade', by: 'me' };
  expect(shown({ paused })).toEqual([undefined, undefined, undefined, undefined]);
});

test('if the run record of a loop cannot be read, the state of that loop is unknown, and the other loops are still shown', () => {
  const { 'system-namespaces': _, ...records } = runRecords(NOT_LONG_AGO_MS);
  const message = 'Item demo/runs/system-namespaces does not parse: it is text.';
  const status = statusOf({ records, unreadable: [{ key: 'runs/system-namespaces', message }] });
  expect(status.loops.map(({ state }) => state)).toEqual(['unknown', 'good', 'good', 'good']);
  expect(status).toMatchObject({ health: 'unhealthy', unreadable: [message] });
  expect(status.attention).toMatchObject([{ word: 'unreadable', message }]);
});

const pause = { untilMs: NOW_MS + MINUTE_MS, reason: 'an upgrade', by: 'me' };
const lateRecords = runRecords(NOW_MS - 600 * MINUTE_MS);

test('a paused cluster is shown as paused, not as late, even if its leases expire', () => {
  const leases = [aLease({ expiresAtMs: NOW_MS - MINUTE_MS, misses: 2 })];
  const status = statusOf({ cluster: aCluster({}, { paused: pause }), records: lateRecords, leases });
  expect(status).toMatchObject({ health: 'paused', attention: [], paused: { ...pause, all: false } });
  expect(new Set(status.loops.map(({ state }) => state))).toEqual(new Set(['paused']));
});

test('a paused cluster still shows a lease that had already expired at the last pass of the cluster', () => {
  const startedAtMs = NOW_MS - 10 * MINUTE_MS;
  const leases = [aLease({ expiresAtMs: startedAtMs - MINUTE_MS, misses: 2 })];
  const status = statusOf({ pausedAll: pause, records: runRecords(startedAtMs), leases });
  expect(words(status)).toEqual(words(statusOf({ records: runRecords(NOW_MS), leases })));
  expect(words(status)).not.toEqual([]);
});

test('a paused cluster shows the pause of all clusters if both that pause and its own pause are in force', () => {
  const status = statusOf({ cluster: aCluster({}, { paused: pause }), pausedAll: { ...pause, by: 'you' } });
  expect(status.paused).toEqual({ ...pause, by: 'you', all: true });
});

test('a paused cluster still shows findings that require action, except findings about API servers, because a pause makes these outdated', () => {
  const findings = (['duplicate', 'noLiveLease'] as const).map((type) => ({ type, message: type }));
  const records = runRecords(NOW_MS, { findings });
  expect(new Set(words(statusOf({ pausedAll: pause, records })))).toEqual(new Set(['unhealthy: duplicate']));
});

const found = (...types: readonly FindingType[]) => {
  const findings = types.map((type, n) => ({ type, message: `${type} ${n}`, item: `10.0.0.${n}`, service: 'a/web' }));
  return recordsWith('cluster-ip-repair', { findings }, NOT_LONG_AGO_MS);
};

test.each<[FindingType, ClusterStatus['health']]>([
  ['duplicate', 'unhealthy'],
  ['mayHaveLeaked', 'warning'],
  ['foreignSlice', 'good'],
  ["a later version's" as FindingType, 'warning'],
])('findings of type %s make a cluster %s', (type, health) => {
  expect(statusOf({ records: found(type) }).health).toBe(health);
});

test('all findings of a pass are counted, although the run record keeps only some of them', () => {
  const findings = [{ type: 'duplicate', message: 'twice' }] as const;
  const findingCounts = { duplicate: 101 };
  const status = statusOf({ records: recordsWith('cluster-ip-repair', { findings, findingCounts }, NOT_LONG_AGO_MS) });
  expect(status).toMatchObject({ findingTotal: 101, findingCounts });
  expect(status.loops[2]?.lastPass?.findings).toBe(101);
});

test('the findings of one type are one problem of the cluster, and the problem with the highest severity is listed first', () => {
  const { attention } = statusOf({ records: found('repair', 'duplicate', 'repair', 'duplicate', 'duplicate') });
  expect(attention.map(({ level, message }) => [level, message])).toEqual([
    ['unhealthy', 'duplicate 1 (and 2 more)'],
    ['warning', 'repair 0 (and 1 more)'],
  ]);
});

describe('API servers', () => {
  const apiServers = [aServer('10.9.8.7'), aHost('lb.example.com'), aHost('new.example.com'), aServer('10.9.8.9')];
  const spec = { apiServers };

  test('the API servers of the spec are listed first, in the order of the spec, and the leases of other addresses are listed after them', () => {
    const leases = [
      aLease({ address: '10.1.1.1', source: 'agent' }),
      aLease({ address: '10.9.8.20', host: 'lb.example.com' }),
      aLease({ address: '10.9.8.21', host: 'lb.example.com' }),
      aLease({ address: '10.9.8.7', host: 'lb.example.com' }),
    ];
    const shown = statusOf({ cluster: aCluster(spec), leases }).apiServers;
    expect(shown.map(({ address, host, kind, state }) => [address, host, kind, state])).toEqual([
      ['10.9.8.7', 'lb.example.com', 'server', 'active'],
      ['10.9.8.20', 'lb.example.com', 'shared', 'active'],
      ['10.9.8.21', 'lb.example.com', 'shared', 'active'],
      [undefined, 'new.example.com', 'shared', 'neverSeen'],
      ['10.9.8.9', undefined, 'server', 'neverSeen'],
      ['10.1.1.1', undefined, undefined, 'active'],
    ]);
  });

  const endpointsRecord = (record: object) => recordsWith('kubernetes-service', record, NOT_LONG_AGO_MS);
  const refreshedAtMs = NOW_MS - 5_000;
  const withdrawnUntilMs = NOW_MS + 1;
  test.each([
    ['a lease that was refreshed', {}, { state: 'active', refreshedAtMs, lastProbe: 'answered 200', misses: 0 }],
    ['an active lease with a miss', { misses: 1, lastProbe: 'x' }, { state: 'active', misses: 1, lastProbe: 'x' }],
    ['an expired lease', { expiresAtMs: NOW_MS, misses: 2 }, { state: 'expired', expiresAtMs: NOW_MS, misses: 2 }],
    ['a withdrawn lease', { withdrawnUntilMs }, { state: 'withdrawn', withdrawnUntilMs }],
    ['a silent API server after its withdrawal', { withdrawnUntilMs: NOW_MS }, { state: 'withdrawn' }],
    ['an agent lease after a withdrawal', { source: 'agent', withdrawnUntilMs: NOW_MS }, { state: 'active' }],
    ['a withdrawal without a lease', { generation: 0, expiresAtMs: 0, withdrawnUntilMs }, { state: 'withdrawn' }],
  ] as const)('the status of an API server shows %s', (_, lease, shown) => {
    const [status] = statusOf({ leases: [aLease(lease)] }).apiServers;
    expect(status).toMatchObject({ address: '10.9.8.7', kind: 'server', ...shown });
    if (!('refreshedAtMs' in shown)) expect(status?.refreshedAtMs).toBeUndefined();
    if ('generation' in lease) expect(status?.expiresAtMs).toBeUndefined();
  });

  test('each API server without a valid lease is reported if another API server has a valid lease', () => {
    const lastProbe = 'no answer: connect ECONNREFUSED';
    const leases = [aLease({ expiresAtMs: NOW_MS - MINUTE_MS, misses: 2, lastProbe })];
    const { health, attention } = statusOf({ cluster: aCluster(spec), leases });
    expect(health).toBe('warning');
    expect(attention.map(({ message }) => message)).toEqual([
      'API server 10.9.8.7: its lease expired 60s ago, last probe: no answer: connect ECONNREFUSED',
      'API server lb.example.com has not answered yet',
      'API server new.example.com has not answered yet',
      'API server 10.9.8.9 has not answered yet',
    ]);
  });

  const WITHDRAWN = `10.9.8.7 is withdrawn until ${new Date(NOW_MS + MINUTE_MS).toISOString()}`;
  const SILENT_SINCE = '10.9.8.7 has not answered since its withdrawal ended, last probe: answered 503';

  test('if more than three API servers give the same answer, they are listed as one problem', () => {
    const servers = Array.from({ length: 100 }, (_, n) => aServer(`10.0.1.${n}`));
    const dead = { expiresAtMs: NOW_MS - MINUTE_MS, misses: 2 };
    const leases = servers.map(({ address }) => aLease({ ...dead, address, lastProbe: `answered 404 at ${address}` }));
    const cluster = aCluster({ apiServers: [...servers, aServer('10.9.8.7')] });
    expect(statusOf({ cluster, leases: [...leases, aLease()] }).attention.map(({ message }) => message)).toEqual([
      'API server 10.0.1.0: its lease expired 60s ago, last probe: answered 404 at 10.0.1.0 (and 99 more)',
    ]);
  });

  test.each([
    ['the end of a withdrawal', MINUTE_MS, WITHDRAWN],
    ['the last probe after a withdrawal is over', -1, SILENT_SINCE],
  ])('the problem that no API server has an active lease shows %s', (_, endsInMs, message) => {
    const leases = [aLease({ withdrawnUntilMs: NOW_MS + endsInMs, lastProbe: 'answered 503' })];
    const problemsOf = (record: object) => statusOf({ records: endpointsRecord(record), leases }).attention;
    const whole = `no API server has a valid lease; the endpoints stay unchanged; ${message}`;
    const next = expect.stringContaining('kbctl doctor demo shows why no API server');
    const problem = { level: 'unhealthy', word: 'noLiveLease', next };
    expect(problemsOf({ counts: { activeLeases: 0 } })).toMatchObject([{ ...problem, message: whole }]);
    const findings = [{ type: 'noLiveLease', message: 'refused' }];
    expect(problemsOf({ findings })).toMatchObject([problem]);
  });

  test('API servers without a lease are not reported if no pass has run recently', () => {
    const records = { ...runRecords(NOT_LONG_AGO_MS), 'kubernetes-service': aRunRecord(NOW_MS - 60 * MINUTE_MS) };
    expect(words(statusOf({ records, leases: [] }))).toEqual(['unhealthy: late']);
  });
});
