import { userInfo } from 'node:os';
import { expect, test } from '@jest/globals';
import { readCluster, readPauseOfAll } from '../../lib/table/clusters.ts';
import { documentIn, expectPrinted, failed, type KbctlWorlds, ran } from '../support/kbctl-world.ts';

const HOUR_MS = 3_600_000;

export function describePause(worlds: KbctlWorlds): void {
  const world = worlds.each(async ({ register }) => {
    for (const name of ['a', 'b']) await register({ name });
  });
  const kbctl = (...words: string[]) => world().kbctl(words);
  const pausedOf = async (name: string) => (await readCluster(world().table, name))?.paused;

  test('kbctl pause pauses a cluster for a day by default, in the name of the user', async () => {
    const beforeMs = Date.now();
    const { username } = userInfo();
    const result = new RegExp(`^a: paused until \\d{4}-.*Z by ${username}: an upgrade\\n$`);
    expect(await kbctl('pause', 'a', '--reason', 'an upgrade')).toEqual(ran(0, expect.stringMatching(result)));
    const pause = await pausedOf('a');
    expect(pause).toMatchObject({ reason: 'an upgrade', by: username });
    expect(pause?.untilMs).toBeGreaterThanOrEqual(beforeMs + 24 * HOUR_MS);
  });

  test('kbctl pause pauses several clusters for the time of --for, in the name of --by', async () => {
    const words = ['--for', '2h', '--reason', 'more', '--by', 'the night shift'];
    expect(await kbctl('pause', 'a', 'b', ...words)).toMatchObject({ code: 0 });
    for (const name of ['a', 'b']) expect(await pausedOf(name)).toMatchObject({ by: 'the night shift' });
    expect((await pausedOf('a'))?.untilMs).toBeLessThanOrEqual(Date.now() + 2 * HOUR_MS);
    expect((await kbctl('cluster', 'get')).stdout).toMatch(/\na .* more\nb .* more\n$/);
  });

  test('kbctl pause --dry-run prints the pause, and pauses nothing', async () => {
    expectPrinted(await kbctl('pause', 'b', '--reason', 'x', '--dry-run'), 1, /: x \(dry run\)\n$/);
    expect(await pausedOf('b')).toBeUndefined();
  });

  test.each([
    ['an empty reason', ['pause', 'a', '--reason', ' '], '--reason is empty'],
    ['no clusters', ['pause', '--reason', 'x'], 'Name the clusters, or use --all.'],
    ['names with --all', ['pause', 'a', '--all', '--reason', 'x'], 'Use either --all or the names of clusters.'],
    ['a pause of more than a year', ['pause', 'a', '--for', '400d', '--reason', 'x'], '--for is at most 366d'],
  ])('kbctl pause refuses %s', async (_, words, reason) => {
    expect(await kbctl(...words)).toMatchObject(failed(2, reason));
  });

  test('kbctl pause pauses no cluster if one is not registered', async () => {
    expect(await kbctl('pause', 'b', 'c', '--reason', 'x')).toMatchObject(failed(3, 'Cluster "c" not found'));
    expect(await pausedOf('b')).toBeUndefined();
  });

  test('kbctl resume resumes a paused cluster, and reports a cluster that was not paused', async () => {
    await kbctl('pause', 'a', '--reason', 'x');
    expect(await kbctl('resume', 'a', 'b')).toEqual(ran(0, 'a: resumed\nb: was not paused\n'));
    expect(await pausedOf('a')).toBeUndefined();
  });

  test('kbctl pause --all pauses all clusters, and commands that resume or show one cluster print this pause', async () => {
    const reason = 'a move';
    const document = documentIn(await kbctl('pause', '--all', '--for', '30m', '--reason', reason, '-o', 'json'));
    expect(document).toMatchObject({ kind: 'PauseOfAll', changed: true, paused: { reason } });
    expect(await readPauseOfAll(world().table)).toMatchObject({ reason });
    const note = /^All clusters are paused until .*: a move\. Use "kbctl resume --all" to resume them\.\n$/;
    expect((await kbctl('resume', 'a')).stderr).toMatch(note);
    expect((await kbctl('cluster', 'get')).stderr).toMatch(note);
  });

  test('kbctl resume --all ends the pause of all clusters, and reports if no such pause exists', async () => {
    await kbctl('pause', '--all', '--reason', 'x');
    expect((await kbctl('resume', '--all')).stdout).toMatch(/^all clusters: resumed/);
    expect(await readPauseOfAll(world().table)).toBeUndefined();
    expectPrinted(await kbctl('resume', '--all'), 0, 'were not paused');
  });
}
