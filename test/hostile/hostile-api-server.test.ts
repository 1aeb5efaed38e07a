import { describe, expect, jest, test } from '@jest/globals';
import type { ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import { listAllServices } from '../../lib/kubernetes/item-reader.ts';
import { BytesInFlight, readWhole } from '../../lib/kubernetes/reply-bounds.ts';
import { portOver } from '../kubernetes/port-answering.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { accessTo, transportWith } from '../support/transport-to.ts';
import { ATTACKS, type Attack } from './attacks.ts';
import { startHostileApiServer } from './hostile-api-server.ts';

const MIB = 1024 * 1024;
const CALLS = {
  get: (port: ClusterPort) => port.get({ kind: 'Service', namespace: 'default', name: 'kubernetes' }),
  services: listAllServices,
};

async function portTo(attack: Attack) {
  const server = await startHostileApiServer(attack);
  afterThisTest(server.stop);
  const transport = transportWith(await accessTo(server.url));
  // The timeout is long, so that not the timeout but a limit ends a reply that keeps arriving, even on a busy machine.
  const limit = AbortSignal.timeout(attack.everyMs === undefined ? 600_000 : 20);
  const timeout = jest.spyOn(AbortSignal, 'timeout').mockReturnValue(limit);
  afterThisTest(() => timeout.mockRestore());
  return { server, port: portOver(transport, { server: server.url }) };
}

/**
 * The attack with eight million chunks of one byte, which take long to read. Only the call `get` is tested here;
 * test/deploy/hostile-neighbour.test.ts sends such chunks in a list of Services.
 */
const SLOW = 'a body without an end in chunks of one byte';

describe.each(ATTACKS)('a hostile reply with $name', (attack) => {
  const calls = attack.name === SLOW ? (['get'] as const) : (['get', 'services'] as const);
  test.each(calls)('after a hostile reply, %s ends with the expected code and a short message', async (name) => {
    const { server, port } = await portTo(attack);
    const error: unknown = await CALLS[name](port).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'ClusterError', code: attack.ends[name] });
    expect(String(error).length).toBeLessThan(1_000);
    // `sent` includes the bytes that are still in the socket buffers of this machine.
    expect(server.sent()).toBeLessThan(64 * MIB);
  });
});

const LIMIT_BYTES = 100;

test('if only one API server sends replies, these replies can use the whole memory limit, but not more', () => {
  const inFlight = new BytesInFlight(LIMIT_BYTES);
  inFlight.add('one', 100);
  expect(() => inFlight.add('one', 1)).toThrow('more bytes than this process has room for');
  inFlight.remove('one', 50);
  expect(() => inFlight.add('one', 50)).not.toThrow();
});

test('if replies of one API server reach the memory limit, another API server can still use half the limit', () => {
  const inFlight = new BytesInFlight(LIMIT_BYTES);
  inFlight.add('greedy', 100);
  expect(() => inFlight.add('modest', 50)).not.toThrow();
  expect(() => inFlight.add('greedy', 1)).toThrow();
  expect(() => inFlight.add('modest', 1)).toThrow();
});

test('the bytes of a reply count as in flight only until the reply ends or fails', async () => {
  const inFlight = new BytesInFlight(LIMIT_BYTES);
  await readWhole([Buffer.alloc(100)], 'one', inFlight);
  await expect(readWhole(broken(), 'one', inFlight)).rejects.toThrow('broken');
  expect(() => inFlight.add('one', 100)).not.toThrow();
});

function* broken(): Generator<Uint8Array> {
  yield Buffer.alloc(60);
  throw new Error('broken');
}
