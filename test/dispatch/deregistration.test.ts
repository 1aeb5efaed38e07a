import { describe, expect, test } from '@jest/globals';
import { deregistration } from '../../lib/dispatch/deregistration.ts';
import { ClusterError } from '../../lib/kubernetes/errors.ts';
import { listLeases } from '../../lib/table/leases.ts';
import type { DispatchWorld } from '../support/dispatch-world.ts';
import { aDispatchWorld } from '../support/dispatch-world.ts';

const handler = deregistration();
const probe = { path: '/readyz', authenticate: false };
const apiServers = [
  { address: '10.9.8.7', kind: 'server', probe },
  { address: '10.9.8.8', kind: 'server', probe },
] as const;

async function aWorld(overrides: Parameters<typeof aDispatchWorld>[0] = {}): Promise<DispatchWorld> {
  const world = aDispatchWorld(overrides);
  await world.register({ name: 'demo', apiServers });
  return world;
}

function ask(world: DispatchWorld, event: unknown) {
  return handler(event, { getRemainingTimeInMillis: () => 25_000, environment: world.environment });
}

/** When the address may come back, for the table. */
async function withdrawnUntil(world: DispatchWorld, address: string): Promise<number | undefined> {
  const leases = await listLeases(world.table, 'demo');
  return leases.find(({ lease }) => lease.address === address)?.lease.withdrawnUntilMs;
}

describe('the deregister function', () => {
  test('withdraws the address for as long as it is asked to, and tells', async () => {
    const world = await aWorld();
    const untilMs = world.clock.nowMs + 90 * 60_000;
    const event = { cluster: 'demo', address: '10.9.8.7', untilMinutes: 90, lastOne: true };
    expect(await ask(world, event)).toMatchObject({ outcome: 'deregistered', untilMs, stillPublished: false });
    expect(await withdrawnUntil(world, '10.9.8.7')).toBe(untilMs);
    expect(world.telemetry.lines).toContainEqual(
      expect.objectContaining({
        level: 'info',
        message: 'deregister: deregistered',
        fields: expect.objectContaining({ cluster: 'demo', address: '10.9.8.7', until: '2026-01-01T13:30:00.000Z' }),
      }),
    );
    expect(world.telemetry.flushes.count).toBe(1);
  });

  test('a refusal is an answer, and nothing is withdrawn', async () => {
    const world = await aWorld();
    expect(await ask(world, { cluster: 'demo', address: '10.9.8.7' })).toMatchObject({
      outcome: 'refused',
      reason: 'lastLiveAddress',
    });
    expect(await withdrawnUntil(world, '10.9.8.7')).toBeUndefined();
    expect(world.telemetry.lines[0]).toMatchObject({ level: 'warn', message: 'deregister: refused' });
  });

  test('an API server that cannot be asked does not keep an address from being withdrawn', async () => {
    const connect = () => Promise.reject(new ClusterError('BadKubeconfig', 'cannot be read'));
    const world = await aWorld({ connect });
    const answer = await ask(world, { cluster: 'demo', address: '10.9.8.7', lastOne: true });
    expect(answer).toMatchObject({
      outcome: 'deregistered',
      stillPublished: true,
      error: { code: 'BadKubeconfig', message: 'cannot be read' },
    });
    expect(await withdrawnUntil(world, '10.9.8.7')).toBeDefined();
    expect(world.telemetry.lines[0]).toMatchObject({
      level: 'warn',
      fields: { errors: ['BadKubeconfig: cannot be read'] },
    });
  });

  test('is bounded in time', async () => {
    const world = await aWorld({ connect: () => new Promise(() => {}) });
    const answer = ask(world, { cluster: 'demo', address: '10.9.8.7' });
    expect(world.deadlines.map(({ ms }) => ms)).toEqual([20_000]);
    world.deadlines[0]?.expire();
    await expect(answer).rejects.toMatchObject({ code: 'DeadlineExceeded' });
    expect(world.deadlines[0]?.cancelled).toBe(true);
  });

  test('a cluster that is not registered is told by its name', async () => {
    const asked = ask(await aWorld(), { cluster: 'nowhere', address: '10.9.8.7' });
    await expect(asked).rejects.toMatchObject({ code: 'NotRegistered', message: expect.stringContaining('nowhere') });
  });

  test.each([
    { event: undefined, fault: 'the event is not of type object' },
    { event: { cluster: 'demo' }, fault: 'address is not of type string' },
    { event: { cluster: 'demo', address: '10.9.8.7', until: 5 }, fault: '"until" is not known' },
    { event: { cluster: 'demo', address: '10.9.8.7', untilMinutes: 0 }, fault: 'untilMinutes is not above 0' },
    { event: { 'detail-type': 'Scheduled Event' }, fault: '"detail-type" is not known' },
  ])('the event $event is refused: $fault', async ({ event, fault }) => {
    const asked = ask(await aWorld(), event);
    await expect(asked).rejects.toMatchObject({ code: 'BadEvent', message: expect.stringContaining(fault) });
  });
});
