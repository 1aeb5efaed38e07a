import { describe, expect, test } from '@jest/globals';
import { undoDeregister } from '../../lib/api-servers/deregister.ts';
import { endWithdrawal } from '../../lib/api-servers/withdrawal.ts';
import { withdrawnUntil } from '../../lib/cluster/lease.ts';
import { AT_ONCE } from '../support/each-table.ts';
import { A, B, type EndpointsWorld, READY, SILENT, settled, worldOf } from '../support/endpoints-world.ts';

const HOUR_MS = 3_600_000;

async function withdrawn(): Promise<EndpointsWorld> {
  const world = await settled(worldOf(A, B));
  await world.deregister({ address: B });
  return world;
}

function undo({ spec, table, nowMs }: EndpointsWorld, address: string = B) {
  return undoDeregister({ spec, table, address, nowMs: () => nowMs });
}

describe('undoing that an address was deregistered', () => {
  test('lets the next tick publish it again', async () => {
    const world = await withdrawn();
    expect(await undo(world)).toEqual({ outcome: 'undone', address: B, wasUntilMs: world.nowMs + HOUR_MS });
    expect(world.published()).toEqual([A]);
    await world.tick();
    expect(world.published()).toEqual([A, B]);
    expect(await world.lease(B)).not.toHaveProperty('withdrawnUntilMs');
  });

  test('publishes no server before it answers, whatever is left of its lease', async () => {
    const world = await withdrawn();
    await world.setLease({ address: B, expiresAtMs: world.nowMs + HOUR_MS });
    await undo(world);
    await world.answer(SILENT, B).tick();
    expect(world.published()).toEqual([A]);
    await world.answer(READY, B).tick();
    expect(world.published()).toEqual([A, B]);
  });

  test('brings back the last one, whose endpoints were emptied', async () => {
    const world = await settled(worldOf(B));
    await world.deregister({ address: B, lastOne: true });
    expect(world.published()).toEqual([]);
    await undo(world);
    await world.tick();
    expect(world.published()).toEqual([B]);
  });

  test('changes nothing when it is repeated', async () => {
    const world = await withdrawn();
    await undo(world);
    const before = await world.lease(B);
    expect(await undo(world)).toEqual({ outcome: 'notWithdrawn', address: B });
    expect(await world.lease(B)).toEqual(before);
  });

  test('is reported when a restored table no longer has it, until it is undone again', async () => {
    const world = await withdrawn();
    const backup = await world.lease(B);
    await undo(world);
    for (let tick = 0; tick < 120; tick++) await world.tick();
    expect(world.published()).toEqual([A, B]);
    await world.setLease({ ...backup, address: B });
    const { findings } = await world.tick();
    expect(world.published()).toEqual([A]);
    expect(findings).toEqual([
      expect.objectContaining({
        type: 'other',
        item: B,
        message: expect.stringContaining(`kbctl deregister demo ${B} --undo`),
      }),
    ]);
    await undo(world);
    expect((await world.tick()).findings).toEqual([]);
    expect(world.published()).toEqual([A, B]);
  });

  test('is asked for ten minutes after a deregistration whose server does not end, and not before', async () => {
    const world = await withdrawn();
    const found: number[] = [];
    for (let seconds = 10; seconds <= 620; seconds += 10) {
      const { findings } = await world.tick();
      if (findings.length > 0) found.push(seconds);
    }
    expect(found).toEqual([620]);
    await world.answer(SILENT, B).tick();
    expect((await world.tick()).findings).toEqual([]);
  });

  test('counts for a server of an agent too', async () => {
    const world = await withdrawn();
    await world.setLease({ address: B, source: 'agent' });
    await undo(world);
    await world.tick(5_000);
    expect(world.published()).toEqual([A, B]);
  });

  test.each([
    { name: 'a text that is no address', address: 'server-1', result: { outcome: 'notAnAddress' } },
    { name: 'an unknown address', address: '192.0.2.1', result: { outcome: 'notRegistered' } },
    { name: 'one that was not withdrawn', address: A, result: { outcome: 'notWithdrawn', address: A } },
  ])('says so of $name', async ({ address, result }) => {
    expect(await undo(await withdrawn(), address)).toEqual(result);
  });
});

describe('undoing while others write', () => {
  test('wins over a pass that had listed the lease before: it is withdrawn no longer', async () => {
    const world = await withdrawn();
    world.whileProbing = () => undo(world);
    await world.answer(SILENT, B).tick();
    expect(await world.lease(B)).toMatchObject({ withdrawnUntilMs: world.nowMs, seenDown: false });
    await world.answer(READY, B).tick();
    expect(world.published()).toEqual([A, B]);
  });

  test('reads again what a pass wrote since it read, and keeps it', async () => {
    const world = await withdrawn();
    const { table, spec } = world;
    let raced = false;
    const racing: typeof table = {
      ...table,
      get: async (...words) => {
        const item = await table.get(...words);
        if (!raced) await world.setLease({ address: B, seenDown: true });
        raced = true;
        return item;
      },
    };
    const ended = await endWithdrawal(racing, spec.name, { address: B, nowMs: world.nowMs }, AT_ONCE);
    expect(ended).toBe(world.nowMs + HOUR_MS);
    expect(await world.lease(B)).toMatchObject({ withdrawnUntilMs: world.nowMs, seenDown: true });
  });

  test('of a withdrawal that is renewed at the same time leaves one or the other, whole', async () => {
    const world = await withdrawn();
    await Promise.all([undo(world), world.deregister({ address: B })]);
    const lease = await world.lease(B);
    const until = lease && withdrawnUntil(lease, 0);
    expect([world.nowMs, world.nowMs + HOUR_MS]).toContain(until);
  });
});
