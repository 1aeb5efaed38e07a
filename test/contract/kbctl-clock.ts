import { expect, test } from '@jest/globals';
import { readPauseOfAll } from '../../lib/table/clusters.ts';
import { CLUSTER, expectPrinted, type KbctlWorlds, passed, ran } from '../support/kbctl-world.ts';

const MINUTE_MS = 60_000;
const QUARTER_MS = 16 * MINUTE_MS;
const ADDRESS = '203.0.113.10';

export function describeClock(worlds: KbctlWorlds): void {
  const world = worlds.shared(passed);
  const stored = () => world().table.list(CLUSTER, '');

  test.each([
    { aheadMs: QUARTER_MS, words: ['run-once', 'cluster-ip-repair', CLUSTER] },
    { aheadMs: -QUARTER_MS, words: ['allocate', 'ip', CLUSTER] },
    { aheadMs: -QUARTER_MS, words: ['release', 'ip', CLUSTER, '10.0.0.9', '--yes'] },
    { aheadMs: -QUARTER_MS, words: ['deregister', CLUSTER, ADDRESS, '--last-one'] },
    { aheadMs: QUARTER_MS, words: ['deregister', CLUSTER, ADDRESS, '--undo'] },
    { aheadMs: QUARTER_MS, words: ['heartbeat', CLUSTER, '--address', ADDRESS, '--once'] },
  ])('kbctl refuses to write if the clock of the host is wrong: $words', async ({ aheadMs, words }) => {
    const before = await stored();
    const how = aheadMs > 0 ? 'ahead of' : 'behind';
    const refusal = new RegExp(`The clock of this host is at least \\d+\\.\\d s ${how} the table's`);
    expect(await world().kbctl(words, { aheadMs })).toEqual(ran(3, '', expect.stringMatching(refusal)));
    expect(await stored()).toEqual(before);
  });

  test('kbctl pause uses the clock of the table if the clock of the host is wrong', async () => {
    const beforeMs = Date.now();
    const words = ['pause', '--all', '--for', '1h', '--reason', 'x'];
    const { code, stderr } = await world().kbctl(words, { aheadMs: -QUARTER_MS });
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(/^warning: The clock of this host/) });
    const untilMs = (await readPauseOfAll(world().table))?.untilMs ?? 0;
    expect(untilMs - beforeMs).toBeGreaterThan(50 * MINUTE_MS);
  });

  test('kbctl shows ages by the clock of the table', async () => {
    const { stdout } = await world().kbctl(['get', 'leases', CLUSTER], { aheadMs: QUARTER_MS });
    expect(stdout).not.toMatch(/\dm ago/);
  });

  test('kbctl doctor fails if the clock of the host is wrong', async () => {
    const checked = await world().kbctl(['doctor', CLUSTER], { aheadMs: -QUARTER_MS });
    expectPrinted(checked, 1, "s behind the table's or more");
  });
}
