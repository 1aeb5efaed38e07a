import { describe, expect, test } from '@jest/globals';
import { failed, portAnswering, portOver, ref, reply, service } from './port-answering.ts';

const lost = Object.assign(new Error('other side closed'), { code: 'ECONNRESET' });
const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });

describe('a write with a lost reply is repeated', () => {
  test('a create returns alreadyExists if its repetition finds the object', async () => {
    const { port, requests } = portAnswering(lost, failed(409, 'AlreadyExists'));
    await expect(port.create(service)).resolves.toEqual({ outcome: 'alreadyExists' });
    expect(requests).toHaveLength(2);
    expect(requests[1]).toEqual(requests[0]);
  });

  test('an update returns conflict if its repetition after a lost reply conflicts', async () => {
    const { port } = portAnswering(lost, failed(409, 'Conflict'));
    await expect(port.update(service)).resolves.toEqual({ outcome: 'conflict' });
  });

  test('a merge patch is sent again after a timeout', async () => {
    const { port, requests } = portAnswering(failed(504, 'Timeout'), reply(200, service));
    await expect(port.mergePatch(ref, { series: { count: 3 } })).resolves.toEqual({
      outcome: 'updated',
      object: service,
    });
    expect(requests[1]?.body).toBe('{"series":{"count":3}}');
    expect(requests[1]?.headers).toMatchObject({ 'content-type': 'application/merge-patch+json' });
  });

  test.each([
    ['deleted after a lost reply', lost, 'deleted'],
    ['deleted after a reply 500', failed(500, 'InternalError'), 'deleted'],
    ['notFound after a refused connection', refused, 'notFound'],
    ['notFound after a reply 429', failed(429, 'TooManyRequests'), 'notFound'],
  ])('a delete whose repetition finds nothing returns %s', async (_, first, outcome) => {
    const { port } = portAnswering(first, failed(404, 'NotFound'));
    await expect(port.delete(service)).resolves.toBe(outcome);
  });
});

describe('an unsafe write is not sent', () => {
  test.each([
    ['an update without a uid', { metadata: { ...service.metadata, uid: '' } }],
    ['an update without a resourceVersion', { metadata: { ...service.metadata, resourceVersion: '' } }],
    ['an update of an unknown kind', { kind: 'Pod' }],
    ['an update of another version of a kind', { apiVersion: 'v2' }],
    ['an update without a namespace', { metadata: { name: 'kubernetes', uid: 'u-1', resourceVersion: '7' } }],
  ])('the client refuses to send %s', async (_, change) => {
    const { port, requests } = portAnswering();
    await expect(port.update({ ...service, ...change })).rejects.toBeInstanceOf(TypeError);
    expect(requests).toEqual([]);
  });

  test('a delete of an object that was not read is refused', async () => {
    const { port, requests } = portAnswering();
    const unread = { ...service, metadata: { name: 'kubernetes', namespace: 'default' } };
    await expect(port.delete(unread)).rejects.toBeInstanceOf(TypeError);
    expect(requests).toEqual([]);
  });
});

describe('a write has exact conditions', () => {
  test('a delete names the uid and the resourceVersion that were read', async () => {
    const { port, requests } = portAnswering(reply(200, { kind: 'Status', status: 'Success' }));
    await expect(port.delete(service)).resolves.toBe('deleted');
    expect(requests[0]).toMatchObject({ method: 'DELETE', path: '/api/v1/namespaces/default/services/kubernetes' });
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual({
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      preconditions: { uid: 'u-1', resourceVersion: '7' },
    });
  });

  test('a create and an update name their field manager and send the whole object', async () => {
    const odd = { ...service, spec: { fieldOfTheFuture: { a: [1] } } };
    const { port, requests } = portAnswering(reply(201, odd), reply(200, odd));
    await port.create(odd);
    await port.update(odd);
    expect(requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /api/v1/namespaces/default/services?fieldManager=kube-bootstrap-controller',
      'PUT /api/v1/namespaces/default/services/kubernetes?fieldManager=kube-bootstrap-controller',
    ]);
    expect(requests.map(({ body }) => JSON.parse(body ?? ''))).toEqual([odd, odd]);
  });
});

test('a call whose wait is ended by the deadline fails with the last answer of the server', async () => {
  const port = portOver(async () => failed(503, 'ServiceUnavailable'), {
    sleep: () => Promise.reject(new Error('aborted')),
  });
  await expect(port.get(ref)).rejects.toMatchObject({ code: 'Unavailable' });
});

test('an attempt without an answer ends at its own timeout, and is retried', async () => {
  let tries = 0;
  const port = portOver(
    (_, signal) => {
      tries += 1;
      return tries > 1
        ? Promise.resolve(reply(200, service))
        : new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(lost)));
    },
    { tryTimeoutMs: 1 },
  );
  await expect(port.get(ref)).resolves.toEqual(service);
});

test('a call makes one connection attempt to an address that drops packets, because more would take the time of other clusters', async () => {
  const { port, requests } = portAnswering(
    Object.assign(new Error('no connection within 3000 ms'), { code: 'CONNECT_TIMEOUT' }),
  );
  await expect(port.get(ref)).rejects.toMatchObject({ code: 'Unavailable' });
  expect(requests).toHaveLength(1);
});
