import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import { admission, admissionSettings } from '../../lib/admission/admission.ts';
import { reviewIn } from '../../lib/admission/request.ts';
import { HOLD_OWNER_LABEL } from '../../lib/cluster/kubernetes-objects.ts';
import { DispatchError } from '../../lib/runtime/deadline.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import { registerCluster, updateCluster, withOwner } from '../../lib/table/cluster-registration.ts';
import { type KeyValueTable, type NewItem, TableError } from '../../lib/table/key-value-table.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { aReview, type ReviewFields, type ServiceFields } from '../support/admission-review.ts';
import { type AdmissionWorld, anAdmissionWorld, TOKEN } from '../support/allocate-world.ts';
import { aDispatchWorld } from '../support/dispatch-world.ts';
import { recordingTelemetry } from '../support/recording-telemetry.ts';
import { failingPuts } from '../support/table-through.ts';

/* The webhook allocates the lowest free item of a dynamic band. The first ones are 10.0.0.17, fd00::101 and 30016. */

const NODE_PORT: ReviewFields = { spec: { type: 'NodePort' } };
const BOTH = { type: 'NodePort', ipFamilyPolicy: 'RequireDualStack' };

const set = (address: string) => [
  { op: 'add', path: '/spec/clusterIP', value: address },
  { op: 'add', path: '/spec/clusterIPs', value: [address] },
];
const port = (nodePort: number) => ({ op: 'add', path: '/spec/ports/0/nodePort', value: nodePort });

let world: AdmissionWorld;
beforeEach(async () => {
  world = await anAdmissionWorld();
});

async function takenIn(world: AdmissionWorld): Promise<readonly string[]> {
  return Object.keys(await world.taken()).sort();
}

test('a Service gets an address and a node port that are allocated to it', async () => {
  const patch = [...set('10.0.0.17'), port(30_016)];
  expect(await world.ask(NODE_PORT)).toEqual({ uid: 'u-1', allowed: true, patchType: 'JSONPatch', patch });
  expect(await takenIn(world)).toEqual(['10.0.0.17', '30016']);
  const allocated = { clusterIPs: ['10.0.0.17'], nodePorts: ['30016'], retries: 0 };
  const fields = { cluster: 'demo', request: 'u-1', operation: 'CREATE', service: 'default/web', ...allocated };
  expect(world.telemetry.lines).toEqual([{ level: 'info', message: 'admission: allocated', fields }]);
  expect(world.telemetry.counters).toEqual({ allocations: 2, allocationRetries: 0 });
  expect(world.telemetry.flushes.count).toBe(1);
});

test("a Service keeps a requested value in the client's notation", async () => {
  const clusterIPs = ['010.0.0.5'];
  const spec = { type: 'NodePort', clusterIP: '010.0.0.5', clusterIPs, ports: [{ port: 80, nodePort: 30_001 }] };
  expect(await world.ask({ spec })).toEqual({ uid: 'u-1', allowed: true });
  expect(await takenIn(world)).toEqual(['10.0.0.5', '30001']);
});

test('a Service that needs no address or port is allowed without a read of the table', async () => {
  const unreachable = { ...world.table, get: () => Promise.reject(new TableError('Unavailable', 'no answer')) };
  await world.send({ body: '{}' }); // the webhook knows the token from now on
  for (const spec of [{ clusterIP: 'None' }, { type: 'ExternalName', ports: [] }]) {
    expect(await world.ask({ spec }, unreachable)).toEqual({ uid: 'u-1', allowed: true });
  }
  const oldSpec = { clusterIP: '10.0.0.5', clusterIPs: ['10.0.0.5'] };
  const change = { spec: { ...oldSpec, selector: { a: 'b' } }, oldSpec };
  expect(await world.ask(change, unreachable)).toMatchObject({ allowed: true });
});

test.each<[string, ReviewFields]>([
  ['with another name', { name: 'copy' }],
  ['in another namespace', { namespace: 'other' }],
  ['without a name', { generateName: 'web' }],
])('a Service %s is refused if it copies the values of another Service', async (_what, whose) => {
  await world.ask(NODE_PORT);
  const { status } = await world.ask({ ...whose, spec: { clusterIP: '10.0.0.17', clusterIPs: ['10.0.0.17'] } });
  expect(status).toMatchObject({ code: 422 });
});

describe('refusals with the messages of the API server', () => {
  const invalid = (field: string, value: string, detail: string) => {
    const message = `Invalid value: ${value}: ${detail}`;
    return {
      status: 'Failure',
      code: 422,
      reason: 'Invalid',
      message: `Service "web" is invalid: ${field}: ${message}`,
      details: { name: 'web', kind: 'Service', causes: [{ reason: 'FieldValueInvalid', message, field }] },
    };
  };
  const internal = (message: string) => ({
    status: 'Failure',
    code: 500,
    reason: 'InternalError',
    message: `Internal error occurred: ${message}`,
    details: { causes: [{ message }] },
  });
  const everyAddress = new Uint8Array(32).fill(255);
  everyAddress[0] = 0x3f;
  const ports = (first: number, second: number) => ({
    type: 'NodePort',
    ports: [
      { name: 'a', port: 1, nodePort: first },
      { name: 'b', port: 2, nodePort: second },
    ],
  });
  const taken = 'provided port is already allocated';
  const takenIp = 'failed to allocate IP 10.0.0.5: provided IP is already allocated';
  const foreignIp =
    'failed to allocate IP 10.9.0.5: the provided IP (10.9.0.5) is not in the valid range. The range of valid IPs is 10.0.0.0/24';
  const foreignPort = 'provided port is not in the valid range. The range of valid ports is 30000-30127';

  test.each<[string, ServiceFields, object]>([
    ['an address that is taken', { clusterIP: '10.0.0.5' }, invalid('spec.clusterIPs', '["10.0.0.5"]', takenIp)],
    [
      'a taken address and any address of the other family',
      { clusterIP: '10.0.0.5', ipFamilyPolicy: 'RequireDualStack' },
      invalid('spec.clusterIPs', '["10.0.0.5",""]', takenIp),
    ],
    ['an address outside the range', { clusterIP: '10.9.0.5' }, invalid('spec.clusterIPs', '["10.9.0.5"]', foreignIp)],
    ['a node port that is taken', ports(0, 30_001), invalid('spec.ports[1].nodePort', '30001', taken)],
    ['one node port for two ports', ports(30_002, 30_002), invalid('spec.ports[1].nodePort', '30002', taken)],
    ['a node port outside the range', ports(80, 0), invalid('spec.ports[0].nodePort', '80', foreignPort)],
    [
      'a port for health checks that is taken',
      { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 30_001 },
      internal(`failed to allocate requested HealthCheck NodePort 30001: ${taken}`),
    ],
  ])('a Service is refused if it requests %s', async (_what, spec, status) => {
    const first = { type: 'NodePort', clusterIP: '10.0.0.5', ports: [{ port: 1, nodePort: 30_001 }] };
    await world.ask({ name: 'other', spec: first });
    const before = await takenIn(world);
    expect(await world.ask({ spec })).toEqual({ uid: 'u-1', allowed: false, status });
    expect(await takenIn(world)).toEqual(before);
    expect(world.telemetry.lines.at(-1)).toMatchObject({ level: 'warn', message: 'admission: refused' });
  });

  test.each([
    ['address', RANGE_KEYS.primary, everyAddress, {}, 'a serviceIP for Service "web"'],
    ['node port', RANGE_KEYS.nodePorts, new Uint8Array(16).fill(255), { spec: BOTH }, 'a nodePort'],
  ])('a Service is refused if no %s is free, and its other items are released', async (_, key, data, fields, what) => {
    await world.store(key, { data });
    const before = await takenIn(world);
    expect((await world.ask(fields)).status).toEqual(internal(`failed to allocate ${what}: range is full`));
    expect(await takenIn(world)).toEqual(before);
  });
});

describe('a held item', () => {
  const spec = { clusterIP: '10.0.0.5' };
  const withHold = async (takenUpBy: 'any' | 'owner', end: { readonly untilMs?: number } = {}) => {
    const holds = [{ items: ['10.0.0.5'], owner: 'team-a', takenUpBy, ...end }];
    await world.store(RANGE_KEYS.primary, { data: Uint8Array.of(0b10000), holds });
    return world;
  };

  test.each([
    ['with the label of the owner claims a held item', 'team-a', {}, true],
    ['without the label of the owner does not get an item that is held for its Services', 'team-b', {}, false],
    ['with the label of the owner does not claim an item after the end of its hold', 'team-a', { untilMs: 0 }, false],
  ])('a Service %s', async (_what, label, end, allowed) => {
    const world = await withHold('owner', end);
    expect(await world.ask({ spec, labels: { [HOLD_OWNER_LABEL]: label } })).toMatchObject({ allowed });
    const { holds } = await world.stored(RANGE_KEYS.primary);
    expect(holds).toHaveLength(allowed ? 0 : 1);
    expect(await takenIn(world)).toContain('10.0.0.5');
  });

  test('a claimed item stays allocated when another value of the Service is refused', async () => {
    const world = await withHold('any');
    const refused = { ...spec, type: 'NodePort', ports: [{ port: 1, nodePort: 1 }] };
    expect(await world.ask({ spec: refused })).toMatchObject({ allowed: false });
    expect(await takenIn(world)).toEqual(['10.0.0.5']);
  });
});

test('a dry run returns values and refusals, and writes nothing', async () => {
  await world.ask({ name: 'other' });
  const before = await world.items();
  expect(await world.ask({ ...NODE_PORT, dryRun: true })).toMatchObject({
    patch: [...set('10.0.0.18'), port(30_016)],
  });
  expect(await world.ask({ dryRun: true, spec: { clusterIP: '10.0.0.17' } })).toMatchObject({ allowed: false });
  expect(await world.items()).toEqual(before);
  expect(world.telemetry.counters['allocations']).toBe(1);
});

const IF_ENFORCED = { wouldBe: 'allocated', clusterIPs: ['10.0.0.17'], nodePorts: ['30016'] };
test.each([
  ['mode: observe', 'the values that mode enforce would allocate', { mode: 'observe' }, IF_ENFORCED],
  ['allocator: apiserver', 'the reason', { allocator: 'apiserver' }, { reason: 'allocator: apiserver' }],
] as const)(
  'in a cluster with %s, a Service is allowed unchanged, nothing is written, and the log contains %s',
  async (_what, _logged, spec, fields) => {
    const world = await anAdmissionWorld({ spec });
    const before = await world.items();
    expect(await world.ask(NODE_PORT)).toEqual({ uid: 'u-1', allowed: true });
    expect(await world.items()).toEqual(before);
    expect(world.telemetry.lines).toMatchObject([{ fields }]);
  },
);

describe('a table that cannot allocate', () => {
  const RANGES = (item: NewItem) => item.key.startsWith('ranges/');
  const unavailable = { status: 'Failure', code: 503, reason: 'ServiceUnavailable' };

  const unreachable = ({ table }: AdmissionWorld): KeyValueTable => ({
    ...table,
    get: async (cluster, key) => {
      if (key.startsWith('ranges/')) throw new TableError('Unavailable', 'the table does not answer');
      return table.get(cluster, key);
    },
  });
  const OTHERS = withOwner('other');
  const OTHER_RANGE = aClusterSpec({ allocator: 'table', serviceClusterIPRanges: ['10.1.0.0/24'] });

  test.each<[string, string, (world: AdmissionWorld) => KeyValueTable | Promise<KeyValueTable>]>([
    ['the table throttles requests', 'Throttled', ({ table }) => failingPuts(table, 'Throttled', RANGES)],
    ['the table cannot be reached', 'Unavailable', unreachable],
    ['no pass has saved the ranges', 'NotReady', ({ table }) => registerCluster(table, OTHER_RANGE).then(() => table)],
    [
      'another stack owns the cluster',
      'OtherStack',
      ({ table }) => updateCluster(table, 'demo', OTHERS).then(() => table),
    ],
  ])(
    'if the table cannot allocate for a cluster because %s, ADMISSION_ON_FAILURE decides whether the Service is refused or allowed, and no item stays allocated',
    async (_what, code, spoil) => {
      for (const onFailure of ['refuse', 'allow'] as const) {
        const world = await anAdmissionWorld({ settings: { onFailure }, environment: { stack: 'mine' } });
        await world.send({ body: '{}' });
        const answer = await world.ask(NODE_PORT, await spoil(world));
        expect(answer).toMatchObject(
          onFailure === 'allow' ? { allowed: true } : { allowed: false, status: unavailable },
        );
        if (onFailure === 'refuse')
          expect(answer.status?.message).toMatch(new RegExp(`table now \\(${code}\\): try again`));
        expect(answer).not.toHaveProperty('patch');
        expect(await takenIn(world)).toEqual([]);
        expect(world.telemetry.lines.at(-1)).toMatchObject({ level: 'warn', message: 'admission: failed' });
        expect(world.telemetry.counters[`allocationsRefused{type=${code}}`]).toBe(1);
      }
    },
  );

  test('the log contains only a part of a long name, because the name is logged before it is checked', async () => {
    await world.ask({ name: 'x'.repeat(100_000), spec: { clusterIP: '10.9.0.5' } });
    expect(JSON.stringify(world.telemetry.lines).length).toBeLessThan(3_000);
  });

  test('if the release of an item fails, the item stays allocated, and the failure is logged', async () => {
    let writes = 0;
    const { status } = await world.ask(
      { spec: BOTH },
      failingPuts(world.table, 'Throttled', () => ++writes > 1),
    );
    expect(status).toMatchObject(unavailable);
    expect(await takenIn(world)).toEqual(['10.0.0.17']);
    const messages = world.telemetry.lines.map(({ message }) => message);
    expect(messages).toEqual(['admission: not released', 'admission: failed']);
  });

  test.each([
    { query: '', waitedMs: undefined, budgetMs: 8_000 },
    { query: 'timeout=3s', waitedMs: undefined, budgetMs: 2_500 },
    { query: 'timeout=30s', waitedMs: undefined, budgetMs: 8_000 },
    { query: 'timeout=x', waitedMs: undefined, budgetMs: 8_000 },
    { query: 'timeout=0s', waitedMs: undefined, budgetMs: 8_000 },
    { query: 'timeout=5s', waitedMs: 1_200, budgetMs: 3_300 },
    { query: 'timeout=5s', waitedMs: -50, budgetMs: 4_500 },
    { query: 'timeout=5s', waitedMs: 60_000, budgetMs: 0 },
  ])(
    'if a review has the query "$query" and waited $waitedMs ms before the invocation, it must be answered within $budgetMs ms',
    async ({ query, waitedMs, budgetMs }) => {
      const deadlines: number[] = [];
      const startDeadline = (ms: number) => {
        deadlines.push(ms);
        return { signal: new AbortController().signal, cancel: () => undefined };
      };
      const world = await anAdmissionWorld({ environment: { startDeadline } });
      const cameAtMs = waitedMs === undefined ? {} : { cameAtMs: world.clock.nowMs - waitedMs };
      await world.send({ query, ...cameAtMs, body: '{}' });
      expect(deadlines[0]).toBe(budgetMs);
    },
  );

  test('a review that times out before the tokens are read gets the status 503', async () => {
    const over = AbortSignal.abort(new DispatchError('DeadlineExceeded', 'the test says so'));
    const startDeadline = () => ({ signal: over, cancel: () => undefined });
    const world = await anAdmissionWorld({ environment: { startDeadline } });
    expect(await world.send({ body: '{}' })).toMatchObject({ statusCode: 503 });
  });

  test('after a write conflict, the webhook waits for a time that depends on the number of attempts and on the duration of the last attempt, and tries again', async () => {
    const waits: (readonly number[])[] = [];
    const world = await anAdmissionWorld({ wait: async (...wait) => void waits.push(wait) });
    const put: KeyValueTable['put'] = async (item, previous) => {
      if (waits.length === 30) return world.table.put(item, previous);
      world.clock.nowMs += 100 + waits.length;
      return { outcome: 'lost' };
    };
    expect(await world.ask({}, { ...world.table, put })).toMatchObject({ patch: set('10.0.0.17') });
    expect(waits).toEqual(Array.from({ length: 30 }, (_, attempt) => [attempt, 100 + attempt]));
    expect(world.telemetry.counters['allocationRetries']).toBe(30);
  });

  test.each([
    ['happened', true],
    ['did not happen', false],
  ])('if a write %s and its outcome is unclear, the next Service gets other items', async (_, happened) => {
    const unclear = new Set<string>();
    const put: KeyValueTable['put'] = async (item, previous) => {
      if (!RANGES(item) || unclear.has(item.key)) return world.table.put(item, previous);
      unclear.add(item.key);
      if (happened) await world.table.put(item, previous);
      return { outcome: 'unclear' };
    };
    const answer = await world.ask(NODE_PORT, { ...world.table, put });
    expect(answer).toMatchObject({ allowed: true });
    expect(await takenIn(world)).toHaveLength(happened ? 4 : 2);
    expect((await world.ask({ ...NODE_PORT, name: 'other' })).patch).not.toEqual(answer.patch);
  });
});

const REVIEW = JSON.stringify(aReview());

/** Sends requests one after the other. Returns their statuses. */
async function flood(world: AdmissionWorld, count: number, body = '{'): Promise<number[]> {
  const statuses: number[] = [];
  for (let sent = 0; sent < count; sent += 1) statuses.push((await world.send({ body })).statusCode);
  return statuses;
}

test('if a cluster floods the webhook, its requests are refused before their bodies are read, and requests of other clusters are answered', async () => {
  const world = await anAdmissionWorld({ readTokens: async () => ({ outcome: 'read', text: TOKEN }) });
  await registerCluster(world.table, aClusterSpec({ name: 'quiet' }));
  expect(new Set(await flood(world, 1_000))).toEqual(new Set([400]));
  expect(await world.send({ body: REVIEW })).toMatchObject({ statusCode: 429 });
  expect(await world.send({ path: '/quiet', body: REVIEW })).toMatchObject({ statusCode: 200 });

  world.clock.nowMs += 1_000;
  expect(await flood(world, 21)).toEqual([...Array<number>(20).fill(400), 429]);
});

test.each([
  ['512 Ki characters of one byte', '{'.padEnd(512 * 1024)],
  ['256 Ki characters of two bytes', '{'.padEnd(256 * 1024, 'é')],
])('a review of %s counts as 32 reviews against the rate limit of its cluster', async (_, body) => {
  const world = await anAdmissionWorld({ readTokens: async () => ({ outcome: 'read', text: TOKEN }) });
  expect(await flood(world, 32, body)).toEqual([...Array<number>(31).fill(400), 429]);
});

test.each([
  ['values', `{"ports":[${'{},'.repeat(1_000_000)}{}]}`, 'more than 25000 values'],
  ['levels', '['.repeat(5_800_000), 'nested more than 64 levels'],
])('a review with too many %s is refused before its JSON is parsed', async (_what, body, fault) => {
  const parse = jest.spyOn(JSON, 'parse');
  try {
    expect(reviewIn(body)).toEqual({ fault: expect.stringContaining(fault) });
    expect(parse).not.toHaveBeenCalled();
  } finally {
    parse.mockRestore();
  }
});

test('a review with annotations of 256 KiB in both objects is answered, although JSON escapes each byte as six bytes', async () => {
  const annotations = `"annotations":{"a":"${'\\u003c'.repeat(256 * 1024)}"}`;
  const body = JSON.stringify(aReview({ oldSpec: {} })).replaceAll('"metadata":{', `"metadata":{${annotations},`);
  expect(body.length).toBeGreaterThan(3 * 1024 * 1024);
  expect(await world.send({ body })).toMatchObject({ statusCode: 200 });
});

test.each([
  ['ports', {}, 3_000],
  ['clusterIPs', 1, 16],
  ['ipFamilies', 1, 16],
])('a review with too many %s is refused before the entries are checked', (field, entry, most) => {
  const reviewed = (entries: number) =>
    reviewIn(JSON.stringify(aReview({ spec: { [field]: Array.from({ length: entries }, () => entry) } })));
  expect(reviewed(most)).toEqual({ fault: expect.stringContaining(`spec.${field}.0`) });
  expect(reviewed(most + 1)).toEqual({ fault: `request.object: spec.${field} has more than ${most} entries` });
});

test('requests without a token do not count against the rate limit of a cluster', async () => {
  for (let sent = 0; sent < 1_500; sent += 1) await world.send({ headers: {}, body: REVIEW });
  expect(await world.send({ body: REVIEW })).toMatchObject({ statusCode: 200 });
});

describe('requests that are not valid reviews', () => {
  const body = JSON.stringify({});
  const reviewOf = (request: object) =>
    JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });

  test.each<[string, Parameters<AdmissionWorld['send']>[0], number]>([
    ['without a token', { headers: {}, body }, 401],
    ['with another token', { headers: { authorization: `Bearer ${TOKEN.slice(0, -1)}!` }, body }, 401],
    ['with another scheme', { headers: { authorization: `Basic ${TOKEN}` }, body }, 401],
    ['for a cluster that does not exist', { path: '/other', body }, 401],
    ['for no cluster', { path: '/', body }, 404],
    ['for an invalid cluster name', { path: '/DEMO%00', body }, 404],
    ['by another method', { method: 'GET' }, 405],
    ['with no body', {}, 400],
    ['with invalid JSON', { body: '{"apiVersion":' }, 400],
    ['with deeply nested JSON', { body: `${'['.repeat(200_000)}${']'.repeat(200_000)}` }, 400],
    ['with another version', { body: '{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}' }, 400],
    ['with more than 3.25 MiB', { body: `"${'a'.repeat(3.25 * 1024 * 1024 - 1)}"` }, 413],
    ['with more than 3.25 MiB in fewer characters', { body: `"${'é'.repeat(2 * 1024 * 1024)}"` }, 413],
  ])('a request %s gets only a status, without details', async (_what, sent, statusCode) => {
    const unread = { ...world.table, get: () => Promise.reject(new Error('expected no read of the table')) };
    const reply = await world.send(sent, unread);
    expect(reply.statusCode).toBe(statusCode);
    expect(reply.body).not.toContain(TOKEN);
    expect(JSON.stringify(world.telemetry.lines)).not.toContain(TOKEN.slice(0, -1));
    expect(world.telemetry.lines).toHaveLength(1);
    if (statusCode === 401) expect(reply).toEqual(await world.send({ headers: {} }));
  });

  test('cluster names that a caller invents do not become labels of metrics', async () => {
    const types: unknown[] = [];
    const count = (_name: string, _by: number, type?: string) => void types.push(type);
    const telemetry = { ...recordingTelemetry(), count };
    const world = await anAdmissionWorld({ environment: { telemetry: () => telemetry } });
    for (const path of ['/demo', '/made-up', '/DEMO']) await world.send({ path, headers: {}, body });
    await world.send({ path: '/made-up', body });
    expect(types).toEqual(['Http401', 'Http401', 'Http404', 'Http401']);
  });

  test.each<[string, object]>([
    ['an object that is not a Service', { object: 'x' }],
    ['a Service with invalid ports', { object: { metadata: {}, spec: { ports: [{ port: 'http' }] } } }],
    ['an update without the old object', { operation: 'UPDATE', object: { metadata: {} } }],
  ])('the answer to a review of %s contains the field that is invalid', async (_what, fields) => {
    const kind = { group: '', version: 'v1', kind: 'Service' };
    const reply = await world.send({ body: reviewOf({ uid: 'u', kind, operation: 'CREATE', ...fields }) });
    expect(reply).toMatchObject({ statusCode: 400, body: expect.stringMatching(/^request\.|of request\./) });
  });

  test.each([
    ['a Pod', { kind: { group: '', version: 'v1', kind: 'Pod' }, operation: 'CREATE' }],
    ['a deletion', { kind: { group: '', version: 'v1', kind: 'Service' }, operation: 'DELETE' }],
    ['a status', { kind: { group: '', version: 'v1', kind: 'Service' }, operation: 'UPDATE', subResource: 'status' }],
  ])('a review of %s is allowed', async (_what, fields) => {
    const reply = await world.send({ body: reviewOf({ uid: 'u', ...fields }) });
    expect(JSON.parse(reply.body)).toMatchObject({ response: { uid: 'u', allowed: true } });
  });

  test('a caller gets the status 503 while tokens cannot be read', async () => {
    const world = await anAdmissionWorld({ readTokens: async () => ({ outcome: 'failed', reason: 'AccessDenied' }) });
    expect(await world.send({ body })).toMatchObject({ statusCode: 503 });
    expect(world.telemetry.lines).toMatchObject([
      { fields: { reason: 'p/admission/demo cannot be read: AccessDenied' } },
    ]);
  });

  test('a caller gets the same answer through a REST API of API Gateway, although API Gateway sends events in a different format', async () => {
    await world.repair(world.clock.nowMs);
    const review = JSON.stringify(aReview({ spec: { clusterIP: 'None' } }));
    const reply = await world.handle({
      path: '/demo',
      httpMethod: 'POST',
      queryStringParameters: { timeout: '10s' },
      headers: { Authorization: `Bearer ${TOKEN}` },
      body: review,
      isBase64Encoded: false,
      requestContext: {},
    });
    expect(reply).toMatchObject({ statusCode: 200 });
    expect(JSON.parse(reply.body).response).toEqual({ uid: 'u-1', allowed: true });
    const get = { path: '/demo', httpMethod: 'GET', headers: null, body: null, requestContext: {} };
    expect(await world.handle(get)).toMatchObject({ statusCode: 405 });
  });

  test('an event that is not an HTTP request fails the invocation', async () => {
    const handler = admission({
      settings: { onFailure: 'refuse', deadlineMs: 1, tokenStore: 'ssm', secretsPrefix: 'p/' },
    });
    const context = { getRemainingTimeInMillis: () => 1, environment: aDispatchWorld().environment };
    await expect(handler({ source: 'aws.events' }, context)).rejects.toMatchObject({ code: 'BadEvent' });
  });
});

const SETTINGS = {
  ADMISSION_ON_FAILURE: 'allow',
  ADMISSION_DEADLINE_SECONDS: '5',
  ADMISSION_TOKEN_STORE: 'ssm',
  SECRETS_PREFIX: 'p/',
};

test('admissionSettings reads the settings from environment variables', () => {
  const settings = { onFailure: 'allow', deadlineMs: 5_000, tokenStore: 'ssm', secretsPrefix: 'p/' };
  expect(admissionSettings(SETTINGS)).toEqual(settings);
});

test.each([
  ['ADMISSION_ON_FAILURE', 'ignore'],
  ['ADMISSION_DEADLINE_SECONDS', '30'],
  ['ADMISSION_TOKEN_STORE', undefined],
  ['SECRETS_PREFIX', ''],
])('the setting %s cannot be %p', (name, value) => {
  expect(() => admissionSettings({ ...SETTINGS, [name]: value })).toThrow(name);
});
