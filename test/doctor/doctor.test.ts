import { expect, test } from '@jest/globals';
import type { ProbeReply } from '../../lib/cluster/probe-reply.ts';
import {
  checkApiServer,
  checkHolds,
  checkKubeconfig,
  checkName,
  checkProbes,
  checkRights,
  checkServer,
  checkWebhook,
  endLine,
} from '../../lib/doctor/check-access.ts';
import { checkOwners, checkService, checkSpec } from '../../lib/doctor/check-cluster.ts';
import { checkClock, checkConcurrency, checkQueues, checkTable, doctor } from '../../lib/doctor/doctor.ts';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import { credentialEnds } from '../../lib/kubernetes/credentials.ts';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import {
  PERMISSION_GROUPS,
  type Permission,
  permissionText,
  type SelfReview,
} from '../../lib/kubernetes/permissions.ts';
import { ipAddressOfHold } from '../../lib/range/hold-ip-address.ts';
import { doctorPartsFrom } from '../../lib/runtime/cluster-environment.ts';
import type { DoctorEnvironment, Environment } from '../../lib/runtime/environment.ts';
import { listen } from '../../local/stand-in/api-servers.ts';
import { kubeconfigOf, makeAuthority } from '../../local/stand-in/identity.ts';
import { aClusterSpec, aServer, specIn } from '../support/a-cluster-spec.ts';
import { anAccess } from '../support/an-access.ts';
import { anEndpoints, aSlice } from '../support/an-endpoints.ts';
import { aDispatchWorld, type DispatchWorld } from '../support/dispatch-world.ts';
import { memoryCluster } from '../support/memory-cluster.ts';
import { memoryTable } from '../support/memory-table.ts';
import { running } from '../support/running.ts';
import { IDENTITY, objectsIn, readyStandIn } from '../support/stand-in.ts';
import { stockCidr } from '../support/stock-objects.ts';

const server = running(async () => {
  const standIn = await readyStandIn();
  return { standIn, ...(await listen(standIn, IDENTITY)) };
});

const healthy: Omit<DoctorEnvironment, keyof Environment> = {
  loadKubeconfig: () => parseKubeconfig(kubeconfigOf('stand-in', server.url, IDENTITY), 'of the test'),
  queues: { urls: ['https://sqs.eu-test-1.amazonaws.com/123/ticks'], depth: async () => 0 },
};

/** Replaces the function that loads the kubeconfig of the cluster `one`. */
function loadingOne(load: DoctorEnvironment['loadKubeconfig']): Partial<DoctorEnvironment> {
  return { loadKubeconfig: (spec, signal) => (spec.name === 'one' ? load : healthy.loadKubeconfig)(spec, signal) };
}

async function aWorld(): Promise<DispatchWorld> {
  const world = aDispatchWorld();
  const apiServers = [aServer('10.9.8.7', { url: `${server.url}/readyz` })];
  await world.register({ name: 'one', kubeconfig: { ssm: '/kbc/one' }, apiServers }, { name: 'two', apiServers });
  return world;
}

function ask(world: DispatchWorld, event: unknown, environment: Partial<DoctorEnvironment> = {}) {
  const merged = { ...world.environment, ...healthy, ...environment };
  return doctor(event, { getRemainingTimeInMillis: () => 60_000, environment: merged });
}

test('for one cluster, the doctor checks the table, the queue, the kubeconfig, the API server, the permissions and the endpoints', async () => {
  const { lines, ok } = await ask(await aWorld(), { cluster: 'one' });
  expect(lines.filter(({ level }) => level === 'fail')).toEqual([]);
  expect(ok).toBe(true);
  const checks = [...new Set(lines.map(({ check }) => check))].join(', ');
  expect(checks).toBe('table, queue, spec, kubeconfig, token, dns, api server, probe, rights, service, owner');
  expect(lines.find(({ check }) => check === 'kubeconfig')?.message).toContain('of kubeconfig of the test: https:');
  expect(lines.filter(({ cluster }) => cluster !== undefined).every(({ cluster }) => cluster === 'one')).toBe(true);
  expect(lines.filter(({ level }) => level === 'warn').every(({ fix }) => fix !== undefined)).toBe(true);
});

test('the doctor checks all clusters, and writes one log line', async () => {
  const world = await aWorld();
  const { lines } = await ask(world, undefined);
  expect(lines).toContainEqual({ check: 'clusters', level: 'ok', message: 'registered: 2' });
  expect(new Set(lines.map(({ cluster }) => cluster))).toEqual(new Set([undefined, 'one', 'two']));
  expect(world.telemetry.lines.map(({ message }) => message)).toEqual(['doctor: checks completed']);
  expect(world.telemetry.flushes.count).toBe(1);
});

test('the doctor changes nothing in a cluster', async () => {
  const before = await objectsIn(server.standIn);
  await ask(await aWorld(), {});
  expect(await objectsIn(server.standIn)).toEqual(before);
});

test('a kubeconfig that cannot be read causes one line of level fail, and other clusters are still checked', async () => {
  const message = 'secret kbc/one was not found. Put the kubeconfig there.';
  const unread = () => Promise.reject(new ClusterError('BadKubeconfig', message));
  const { lines, ok } = await ask(await aWorld(), {}, loadingOne(unread));
  expect(ok).toBe(false);
  expect(lines.filter(({ level }) => level === 'fail')).toEqual([
    { cluster: 'one', check: 'kubeconfig', level: 'fail', message },
  ]);
  expect(lines).toContainEqual(expect.objectContaining({ cluster: 'two', check: 'owner' }));
});

test('a check that never ends does not delay other checks', async () => {
  const world = await aWorld();
  const unending = new Promise<never>(() => {});
  const answer = ask(
    world,
    {},
    loadingOne(() => unending),
  );
  while (world.deadlines.length < 3 || !world.deadlines[2]?.cancelled) await new Promise(setImmediate);
  world.deadlines[1]?.expire();
  const { lines } = await answer;
  expect(lines.filter(({ level }) => level === 'fail')).toMatchObject([{ cluster: 'one', check: 'kubeconfig' }]);
  expect(lines).toContainEqual(expect.objectContaining({ cluster: 'two', check: 'owner' }));
});

test('if the cluster in the request is not registered, the doctor fails and prints a line with the resolution', async () => {
  const { lines, ok } = await ask(await aWorld(), { cluster: 'three' });
  expect(ok).toBe(false);
  const message = expect.stringContaining('three');
  expect(lines.at(-1)).toMatchObject({ check: 'clusters', message, fix: expect.any(String) });
});

test('the doctor refuses an event with an unknown field', async () => {
  await expect(ask(await aWorld(), { clusters: ['one'] })).rejects.toMatchObject({ code: 'BadEvent' });
});

test('the doctor reads the limit of concurrent ticks from the environment, and warns if it is too low for the number of clusters', () => {
  expect(doctorPartsFrom({ TICK_CONCURRENCY: '12' }).queues?.concurrency).toBe(12);
  expect(doctorPartsFrom({}).queues).not.toHaveProperty('concurrency');
  expect(checkConcurrency(640, 16, 10)).toEqual([]);
  expect(checkConcurrency(10_000, 16, undefined)).toEqual([]);
  expect(checkConcurrency(10_000, 16, 10)).toMatchObject([
    { level: 'warn', fix: 'Set the parameter tickConcurrency of the stack to 157' },
  ]);
});

const SERVER = 'https://10.20.0.1:6443';

const NOW_MS = Date.parse('2026-01-01T12:00:00Z');
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const never = new AbortController().signal;

function aReview(answers: Partial<SelfReview> = {}): SelfReview {
  return {
    version: async () => 'v1.36.3',
    user: async () => 'jane',
    hasWebhook: async () => undefined,
    allows: async () => true,
    ...answers,
  };
}

const aTable = () => memoryTable({ nowMs: () => NOW_MS });

test('the check of the table writes and lists an item of its own, which expires after an hour', async () => {
  const table = aTable();
  expect(await checkTable(table, NOW_MS)).toEqual([expect.objectContaining({ level: 'ok' })]);
  expect(await table.list('#doctor', '')).toMatchObject([{ key: 'probe', expiresAtMs: NOW_MS + HOUR }]);
});

test('the check of the table fails if the list does not contain the written item', async () => {
  const table = aTable();
  await checkTable(table, NOW_MS);
  const outdated = await table.list('#doctor', '');
  const replica = { ...table, list: async () => outdated };
  expect(await checkTable(replica, NOW_MS)).toMatchObject([
    { level: 'fail', fix: expect.stringContaining('TABLE_NAME') },
  ]);
  expect(await checkTable(table, NOW_MS)).toMatchObject([{ level: 'ok' }]);
});

test.each([
  { outcome: 'lost', level: 'ok' },
  { outcome: 'unclear', level: 'warn' },
] as const)('if the write is $outcome, the check of the table has level $level', async ({ outcome, level }) => {
  expect(await checkTable({ ...aTable(), put: async () => ({ outcome }) }, NOW_MS)).toMatchObject([{ level }]);
});

test.each([
  { skewMs: 0, level: 'ok', message: "agrees with the table's" },
  { skewMs: -2_000, level: 'ok', message: "agrees with the table's" },
  { skewMs: 2_100, level: 'fail', message: "is 2.1 s ahead of the table's or more" },
  { skewMs: -960_000, level: 'fail', message: "is 960.0 s behind the table's or more" },
])('a clock difference of $skewMs ms gets a line of level $level: the clock $message', ({ skewMs, level, message }) => {
  expect(checkClock(skewMs)).toEqual([expect.objectContaining({ check: 'clock', level, message })]);
});

const QUEUE = 'https://sqs.eu-test-1.amazonaws.com/123/ticks';
const denied = () => Promise.reject(new Error('AccessDenied'));

test.each<[string, string[], () => Promise<number>, object]>([
  ['succeeds without a queue', [], async () => 0, { level: 'ok' }],
  ['succeeds if 3 ticks wait', [QUEUE], async () => 3, { level: 'ok', message: 'ticks: 3 ticks wait' }],
  ['warns if 20,000 ticks wait', [QUEUE], async () => 20_000, { level: 'warn', message: 'ticks: 20000 ticks wait' }],
  ['fails if a queue cannot be read', [QUEUE], denied, { level: 'fail', fix: expect.stringContaining('sqs:Get') }],
])('the check of the queues %s', async (_, urls, depth, line) => {
  expect(await checkQueues(urls, depth, never)).toMatchObject([line]);
});

const aToken = (claims: object) =>
  `Bearer eyJhbGciOiJub25lIn0.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`;
const bearing = (Authorization: string) => anAccess({ authHeaders: async () => ({ Authorization }) });

test('the doctor reads the expiry of a token from its claim exp', async () => {
  expect(await credentialEnds(bearing(aToken({ iat: 1_000, exp: 4_000 })))).toEqual([
    { what: 'token', beganMs: 1_000_000, endsMs: 4_000_000 },
  ]);
});

test.each(['Bearer opaque', 'Basic YTpi', 'Bearer a.b.c', aToken({ sub: 'no end' }), aToken({ exp: 'soon' }), ''])(
  'the expiry of the credential %p is unknown',
  async (authorization) => {
    expect(await credentialEnds(bearing(authorization))).toEqual([]);
  },
);

test('the doctor reads the expiry of a client certificate', async () => {
  const { cert } = makeAuthority('test').issue(['demo']);
  const [end] = await credentialEnds(anAccess({ tls: () => ({ cert, rejectUnauthorized: true }) }));
  expect(end).toMatchObject({ what: 'client certificate', endsMs: expect.any(Number) });
  expect(end?.endsMs).toBeGreaterThan(end?.beganMs ?? Number.NaN);
});

test.each([
  ['now causes a line of level fail', 0, 60 * DAY, 'fail'],
  ['in a third of its lifetime causes a warning', 30 * DAY, 60 * DAY, 'warn'],
  ['in a little more than a third of its lifetime causes no warning', 30 * DAY + HOUR, 60 * DAY, 'ok'],
  ['in a week causes a warning if its lifetime is unknown', 7 * DAY, undefined, 'warn'],
  ['in more than a week causes no warning if its lifetime is unknown', 8 * DAY, undefined, 'ok'],
  ['later than every date of JavaScript causes no warning', 8.64e15, undefined, 'ok'],
])('a token that expires %s', (_, restMs, ageMs, level) => {
  const end = { what: 'token', endsMs: NOW_MS + restMs, ...(ageMs && { beganMs: NOW_MS - ageMs }) } as const;
  expect(endLine(end, NOW_MS)).toMatchObject({ check: 'token', level });
});

test('the doctor warns about a kubeconfig that disables TLS verification', async () => {
  const lines = await checkKubeconfig(anAccess({ tls: () => ({ rejectUnauthorized: false }) }), NOW_MS);
  const levels = lines.map(({ check, level }) => `${check} ${level}`);
  expect(levels).toEqual(['kubeconfig ok', 'kubeconfig warn', 'token ok']);
});

test.each([
  ['one of two API servers', 'https://10.9.8.7:6443', 2, ['warn']],
  ['the only API server', 'https://10.9.8.7:6443', 1, []],
  ['a load balancer', 'https://api.demo.example.com', 2, []],
  ['the host name at which one of two API servers is probed', 'https://one.demo.example.com', 2, ['warn']],
] as const)(
  'if the server of a kubeconfig is %s (%s) and the spec has %d servers, the doctor prints lines of the levels %j',
  (_, server, count, levels) => {
    const probed = aServer('10.9.8.7', server.includes('one.') ? { url: `${server}/readyz` } : {});
    const apiServers = [probed, aServer('10.9.8.8')].slice(0, count);
    const lines = checkServer(aClusterSpec({ apiServers }), anAccess({ server }));
    expect(lines.map(({ level }) => level)).toEqual(levels);
  },
);

test.each([
  ['10.9.8.7', {}, 'system-namespaces, kubernetes-service, cluster-ip-repair, node-port-repair stand still, and it'],
  ['10.9.8.7', { servername: 'kubernetes' }, 'cluster-ip-repair, node-port-repair stand still'],
])('for the server %s with %j, the doctor warns about the loops that depend on that server', (host, name, still) => {
  const spec = aClusterSpec({ apiServers: [aServer('10.9.8.7'), aServer('10.9.8.8')] });
  const tls = () => ({ rejectUnauthorized: true, ...name });
  const [line] = checkServer(spec, anAccess({ server: `https://${host}:6443`, tls }));
  expect(line?.message).toContain(`while it is down, ${still}`);
  expect(line?.message.endsWith('still')).toBe('servername' in name);
});

test('no renewal is suggested for a token that is renewed automatically', async () => {
  const ended = `x.${Buffer.from(JSON.stringify({ iat: 0, exp: 1 })).toString('base64url')}.x`;
  const authHeaders = async () => ({ Authorization: `Bearer ${ended}` });
  const access = anAccess({ isIssuedForServer: true, authHeaders });
  expect(await checkKubeconfig(access, NOW_MS)).toMatchObject([
    { check: 'kubeconfig', level: 'ok' },
    { check: 'token', level: 'ok', message: 'AWS STS issues one, and a new one before it ends' },
  ]);
});

test.each([
  ['https://10.0.0.1:6443', undefined, 'ok'],
  ['https://[2001:db8::1]:6443', undefined, 'ok'],
  ['https://api.example.com', ['10.0.0.1'], 'ok'],
  ['https://api.example.com', undefined, 'fail'],
])('for the server %s and the DNS answer %j, the DNS check has level %s', async (server, addresses, level) => {
  expect(await checkName(anAccess({ server }), async () => addresses)).toMatchObject([{ check: 'dns', level }]);
});

test.each([
  [undefined, 'ok', 'and accepts the credential'],
  ['jane', 'ok', 'and accepts the credential as that of jane'],
  ['system:anonymous', 'fail', 'and has no user for the credential (system:anonymous)'],
])('for the user %s of the credential, the line has level %s and ends with "%s"', async (user, level, end) => {
  const [line] = await checkApiServer(anAccess(), aReview({ user: async () => user }));
  expect(line).toMatchObject({ level, message: `https://10.0.0.1:6443 is Kubernetes v1.36.3, ${end}` });
});

test.each([
  ['table', false, ['warn']],
  ['table', true, []],
  ['table', undefined, []],
  ['apiserver', false, []],
] as const)('with allocator %s and hasWebhook %s, the webhook check has levels %j', async (allocator, has, levels) => {
  const lines = await checkWebhook(aClusterSpec({ allocator }), aReview({ hasWebhook: async () => has }));
  expect(lines.map(({ level }) => level)).toEqual(levels);
});

const OK: ProbeReply = { kind: 'status', status: 200, body: 'ok' };
const SHUTTING_DOWN: ProbeReply = { kind: 'status', status: 500, body: '[-]shutdown failed: x' };
test.each<{ reply: ProbeReply; level: string; fix?: unknown; url?: string }>([
  { reply: OK, level: 'ok' },
  { reply: OK, level: 'ok', url: 'https://127.0.0.1:32764/readyz' },
  { reply: { kind: 'status', status: 401, body: '' }, level: 'warn', fix: expect.stringContaining('authenticate') },
  { reply: SHUTTING_DOWN, level: 'warn', fix: expect.any(String) },
  { reply: { kind: 'status', status: 503, body: '' }, level: 'fail', fix: expect.stringContaining('probe.path') },
  { reply: { kind: 'tlsFailure', message: 'x' }, level: 'fail', fix: expect.stringContaining('serverName') },
  { reply: { kind: 'unknown', message: 'x' }, level: 'warn', fix: 'Run the doctor again' },
  { reply: { kind: 'silence', message: 'x' }, level: 'fail', fix: expect.stringContaining('firewall') },
])('with probe.url $url, the line about the result $reply has level $level', async ({ reply, level, fix, url }) => {
  const apiServers = [aServer('10.9.8.7', url === undefined ? {} : { url })];
  const environment = { probe: async () => reply, lookUp: async () => undefined, signal: never };
  const lines = await checkProbes(aClusterSpec({ apiServers }), [], environment);
  expect(lines).toMatchObject([{ check: 'probe', level, ...(fix !== undefined && { fix }) }]);
  const place =
    url === undefined ? 'https://10.9.8.7:6443/readyz' : `${url} and published with port 6443, answered 200`;
  expect(lines[0]?.message).toContain(`10.9.8.7, probed at ${place}`);
});

const reviewing = (allows: (permission: Permission) => boolean) =>
  aReview({ allows: async (permission) => allows(permission) });
const justEnough = ({ namespace }: Permission) => namespace !== 'kube-system';

test.each([
  { name: 'warns about a hold that passes may not end', allocator: 'apiserver', held: 1, may: false, warns: true },
  { name: 'accepts a hold that passes may end', allocator: 'apiserver', held: 1, may: true, warns: false },
  { name: 'accepts a missing permission without holds', allocator: 'apiserver', held: 0, may: false, warns: false },
  { name: 'ignores IPAddresses with allocator: table', allocator: 'table', held: 1, may: false, warns: false },
] as const)('the check of the holds $name', async (given) => {
  const held = [ipAddressOfHold('10.0.0.9', { owner: 'ci', takenUpBy: 'any' })].slice(0, given.held);
  const review = reviewing(({ verb, resource }) => given.may && verb === 'delete' && resource === 'ipaddresses');
  const lines = await checkHolds(review, aClusterSpec({ allocator: given.allocator }), memoryCluster(held).port);
  const message =
    '1 addresses are held, and passes may not delete ipaddresses.networking.k8s.io: a hold that ends stays';
  expect(lines).toEqual(given.warns ? [expect.objectContaining({ level: 'warn', message })] : []);
});

test.each(['Rejected', 'Forbidden'] as const)('the holds get no line if their list fails with %s', async (code) => {
  const list = () => Promise.reject(new ClusterError(code, 'no'));
  expect(await checkHolds(aReview(), aClusterSpec(), { list })).toEqual([]);
});

test('the doctor does not warn about a credential with exactly the required permissions', async () => {
  const lines = await checkRights(reviewing(justEnough), aClusterSpec(), SERVER);
  expect(lines.every(({ level }) => level === 'ok')).toBe(true);
  expect(lines.map(({ message }) => message)).toContain('its endpoints: may create, get, update endpoints in default');
});

test.each([
  { mode: 'enforce', verb: 'update', level: 'fail' },
  { mode: 'observe', verb: 'update', level: 'warn' },
  { mode: 'observe', verb: 'get', level: 'fail' },
] as const)('in mode $mode, a missing right to $verb endpoints has level $level', async ({ mode, verb, level }) => {
  const missing = (permission: Permission) =>
    justEnough(permission) && !(permission.verb === verb && permission.resource === 'endpoints');
  const lines = await checkRights(reviewing(missing), aClusterSpec({ mode }), SERVER);
  expect(lines.filter((line) => line.level !== 'ok')).toEqual([
    expect.objectContaining({
      level,
      message: expect.stringContaining(`may not ${verb} endpoints kubernetes in default`),
      fix: expect.stringContaining('deploy/rbac.yaml'),
    }),
  ]);
});

test.each<[object, ...string[]]>([
  [
    { repair: { ipAddresses: true } },
    'repair.ipAddresses: may not create ipaddresses.networking.k8s.io, delete ipadd',
    'repair.ipAddresses: may not update servicecidrs.networking.k8s.io kubernetes',
  ],
  [{ endpoints: { prune: true } }, 'endpoints.prune: may not delete endpointslices.discovery.k8s.io in default'],
  [
    { serviceClusterIPRange: '10.0.0.0/16,fd00::/108', service: { ipFamilyPolicy: 'PreferDualStack' } },
    'service.ipFamilyPolicy: may not delete endpointslices.discovery.k8s.io kubernetes-ipv6 in default, get ',
  ],
])('the doctor also checks the permissions that an option of the spec needs: %j', async (fields, ...messages) => {
  const base = new Set(PERMISSION_GROUPS.flatMap(({ permissions }) => permissions).map(permissionText));
  const review = reviewing((permission) => base.has(permissionText(permission)));
  const apiServers = [{ address: '10.9.8.7' }];
  const spec = specIn(
    JSON.stringify({ name: 'demo', kubeconfig: { file: 'x' }, apiServers, mode: 'enforce', ...fields }),
  );
  const lines = await checkRights(review, spec, SERVER);
  expect(lines.filter(({ level }) => level !== 'ok')).toEqual(
    messages.map((message) => expect.objectContaining({ level: 'fail', message: expect.stringContaining(message) })),
  );
});

test('the doctor warns about the permissions of an administrator, unless the API server is on this machine', async () => {
  const all = reviewing(() => true);
  const warnings = async (server: string) =>
    (await checkRights(all, aClusterSpec(), server)).filter(({ level }) => level !== 'ok');
  expect(await warnings(SERVER)).toMatchObject([
    { message: expect.stringContaining('allows the credential to redirect any Service') },
  ]);
  expect(await warnings('https://127.0.0.1:6443')).toEqual([]);
});

test.each([
  { title: 'accepts the writes of this project', manager: 'kube-bootstrap-controller', nowMs: 5_000, levels: ['ok'] },
  { title: 'warns about another recent writer', manager: 'kube-apiserver', nowMs: 5_000, levels: ['warn', 'warn'] },
  { title: 'ignores a writer that wrote long ago', manager: 'kube-apiserver', nowMs: HOUR, levels: ['ok'] },
])('the check for other writers $title', async ({ manager, nowMs, levels }) => {
  const cluster = memoryCluster();
  // The two objects are written one and two seconds after the epoch.
  for (const object of [anEndpoints(['10.9.8.7']), aSlice(['10.9.8.7'])]) cluster.place(object, manager);
  const lines = await checkOwners(aClusterSpec(), cluster.port, nowMs);
  expect(lines.map(({ level }) => level)).toEqual(levels);
  expect(lines.every(({ level, message }) => level === 'ok' || message.includes(`was written by ${manager}`))).toBe(
    true,
  );
});

test('the doctor warns about a slice that another controller manages, and the warning ends with the name of that controller', async () => {
  const slice = aSlice(['10.9.8.7']);
  const labels = { ...slice.metadata.labels, 'endpointslice.kubernetes.io/managed-by': 'another' };
  const cluster = memoryCluster([{ ...slice, metadata: { ...slice.metadata, name: 'kubernetes-x', labels } }]);
  const lines = await checkOwners(aClusterSpec(), cluster.port, HOUR);
  expect(lines).toMatchObject([{ level: 'warn', message: expect.stringMatching(/managed by another$/) }]);
});

test('the check for other writers succeeds if the spec publishes no endpoints', async () => {
  const spec = aClusterSpec();
  const none = { ...spec, endpoints: { ...spec.endpoints, reconciler: 'none' as const } };
  expect(await checkOwners(none, memoryCluster().port, HOUR)).toMatchObject([{ level: 'ok' }]);
});

const registered = { spec: aClusterSpec({ mode: 'observe' }), generation: 1, rangesGeneration: 1 };

test('the doctor warns that a cluster is in mode observe, belongs to another stack and is paused', () => {
  const paused = { untilMs: NOW_MS + HOUR, reason: 'work', by: 'me' };
  const lines = checkSpec({ ...registered, paused, owner: { stack: 'theirs' } }, 'ours', NOW_MS);
  expect(lines.filter(({ level }) => level === 'warn').map(({ message }) => message)).toEqual([
    'mode observe: nothing is written',
    'it belongs to the stack theirs: this one (ours) only observes it',
    'its passes are paused until 2026-01-01T13:00:00.000Z by me: work',
  ]);
  const fixes = lines.flatMap((line) => ('fix' in line ? [line.fix] : []));
  for (const command of ['kbctl cluster take-over demo --stack ours', 'kbctl resume demo']) {
    expect(fixes).toContainEqual(expect.stringContaining(command));
  }
});

const served = (name: string, ...cidrs: string[]) => ({ ...stockCidr(...cidrs), metadata: { name } });
const serviceAt = (clusterIP: string, port = 443) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { namespace: 'default', name: 'kubernetes' },
  spec: { clusterIP, ports: [{ port }] },
});

test.each([
  { title: 'in the range', objects: [serviceAt('10.0.0.1')], levels: ['ok'] },
  { title: 'in another range', objects: [serviceAt('10.96.0.1')], levels: ['fail'] },
  { title: 'on another port', objects: [serviceAt('10.0.0.1', 8443)], levels: ['warn'] },
  { title: 'missing', objects: [], levels: ['warn'] },
])('if the kubernetes Service is $title, its check has lines of the levels $levels', async ({ objects, levels }) => {
  const lines = await checkService(aClusterSpec(), memoryCluster(objects).port);
  expect(lines.map(({ level }) => level)).toEqual(levels);
});

const MORE = served('more', '10.0.1.0/24');
const FIRST = served('kubernetes', '10.0.0.0/24');
const DUAL = served('kubernetes', '10.0.0.0/24', 'fd00::/112');

test.each<{ range: string; cidrs: ReturnType<typeof served>[]; allocator?: 'table'; missing?: string }>([
  { range: '10.0.0.0/22', cidrs: [FIRST, MORE] },
  { range: '10.0.0.0/24', cidrs: [FIRST, MORE], allocator: 'table', missing: 'more (10.0.1.0/24)' },
  { range: '10.0.0.0/24', cidrs: [FIRST, MORE] },
  { range: '10.0.0.0/23', cidrs: [DUAL], missing: 'kubernetes (fd00::/112)' },
])('the doctor warns about ServiceCIDRs outside the range $range (allocator $allocator): $missing', async (given) => {
  const { range, cidrs, allocator = 'apiserver', missing } = given;
  const [first] = cidrs.flatMap(({ spec }) => spec.cidrs);
  const service = serviceAt(first === '10.0.0.0/24' ? '10.0.0.1' : '10.96.0.1');
  const spec = aClusterSpec({ allocator, serviceClusterIPRanges: [range] });
  const lines = await checkService(spec, memoryCluster([service, ...cidrs]).port);
  const record = { message: expect.stringMatching(/^API servers allocate from ServiceCIDR kubernetes /) };
  const lacking = { level: 'warn', message: expect.stringContaining(`ServiceCIDR ${missing}`) };
  const line = missing === undefined ? { level: 'ok' } : lacking;
  expect(lines).toMatchObject(allocator === 'table' ? [line] : [record, line]);
});

test('with allocator: table, the check of the kubernetes Service fails if the range of the spec overlaps no ServiceCIDR', async () => {
  const spec = aClusterSpec({ allocator: 'table', serviceClusterIPRanges: ['10.0.0.0/24'] });
  const objects = [serviceAt('10.96.0.1'), served('kubernetes', '10.96.0.0/12')];
  const lines = await checkService(spec, memoryCluster(objects).port);
  expect(lines).toMatchObject([{ level: 'fail', fix: 'Set serviceClusterIPRange to one that contains 10.96.0.0/12' }]);
});

test('the doctor checks the kubernetes Service even if the ServiceCIDRs cannot be listed', async () => {
  const list = () => Promise.reject(new ClusterError('Forbidden', 'no'));
  const lines = await checkService(aClusterSpec(), { ...memoryCluster([serviceAt('10.0.0.1')]).port, list });
  expect(lines).toMatchObject([{ level: 'ok' }]);
});
