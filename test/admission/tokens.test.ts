import { describe, expect, test } from '@jest/globals';
import { tokensNameOf } from '../../lib/admission/admission.ts';
import { ClusterTokens } from '../../lib/admission/tokens.ts';
import type { SecretText } from '../../lib/aws/store-client.ts';

const OLD = 'an-old-token-of-thirty-two-letters-or-more';
const NEW = 'a-new-token-of-thirty-two-letters-or-more';

/**
 * Returns a check of tokens, and the names of the secrets that this check reads. A test can change `texts`, the tokens of each
 * cluster.
 */
function aWorld(texts: Record<string, SecretText | string>) {
  const clock = { nowMs: 1_000_000 };
  const reads: string[] = [];
  const lists: number[] = [];
  const tokens = new ClusterTokens({
    nameOf: (cluster) => `p/admission/${cluster}`,
    nowMs: () => clock.nowMs,
    listClusters: async () => {
      lists.push(clock.nowMs);
      return new Set(Object.keys(texts));
    },
    read: async (name) => {
      reads.push(name);
      const found = texts[name.replace('p/admission/', '')] ?? { outcome: 'absent' };
      return typeof found === 'string' ? { outcome: 'read', text: found } : found;
    },
  });
  const check = async (token: string, cluster = 'demo', signal = new AbortController().signal) =>
    (await tokens.check(cluster, token, signal)).outcome;
  return { clock, reads, lists, check, texts };
}

test('a secret can contain one or two tokens, one per line, and a token is valid only for clusters whose secret contains it', async () => {
  const { check } = aWorld({ demo: `${NEW}\n  ${OLD}  \n\n`, other: `${OLD}\r\n` });
  expect([await check(NEW), await check(OLD), await check(OLD, 'other')]).toEqual(['right', 'right', 'right']);
  expect(await check(NEW, 'other')).toBe('wrong');
});

test.each([
  ['nothing', ' \n'],
  ['too short a token', 'short'],
  ['three tokens', `${NEW}\n${OLD}\n${NEW}x`],
  ['a token with a space', `${NEW} ${OLD}`],
])('a secret with %s contains no valid token', async (_what, text) => {
  const { check } = aWorld({ demo: text });
  expect(await check(NEW)).toBe('unknown');
});

test('a check of a token that is too short or too long reads no secret', async () => {
  const { check, reads } = aWorld({ demo: NEW });
  expect([await check('short'), await check('a'.repeat(600))]).toEqual(['wrong', 'wrong']);
  expect(reads).toEqual([]);
});

test('wrong tokens get the same answers and cause the same reads for a cluster with tokens and for an invented cluster', async () => {
  const seen = async (cluster: string) => {
    const { check, reads, lists, clock } = aWorld({ demo: NEW });
    const answers: unknown[] = [];
    for (let second = 0; second < 120; second += 1) {
      // The API server of the cluster sends the right token all the time.
      expect(await check(NEW)).toBe('right');
      const before = reads.length;
      const outcomes = [await check(OLD, cluster), await check(OLD, cluster), await check(OLD, cluster)];
      answers.push([outcomes, reads.length - before, lists.length]);
      clock.nowMs += 1_000;
    }
    return answers;
  };
  const answers = await seen('invented');
  expect(await seen('demo')).toEqual(answers);
  expect(answers.at(0)).toEqual([['wrong', 'wrong', 'wrong'], 3, 0]);
  expect(answers.at(-1)).toEqual([['wrong', 'wrong', 'unknown'], 2, 1]);
});

test('wrong tokens for existing and invented clusters cause a limited number of reads and do not evict valid tokens from memory', async () => {
  const { check, reads, lists, clock } = aWorld({ demo: NEW });
  await check(NEW);
  for (let name = 0; name < 3_000; name += 1) await check(OLD, `invented-${name}`);
  for (let guess = 0; guess < 10; guess += 1) await check(`${OLD}-${guess}`);
  expect(reads).toHaveLength(100);
  for (let second = 0; second < 30; second += 1) {
    clock.nowMs += 1_000;
    for (let name = 0; name < 1_000; name += 1) await check(OLD, `invented-${second}-${name}`);
  }
  // Two look-ups a second, and the read for demo, which waited for the first of them.
  expect(reads).toHaveLength(100 + 60 + 1);
  expect(lists).toHaveLength(1);
  expect(await check(NEW)).toBe('right');
  expect(reads).toHaveLength(161);
});

describe('a flood of 1,000 invented cluster names and 10 wrong tokens for existing clusters per second', () => {
  const CLUSTERS = Array.from({ length: 100 }, (_, index) => `cluster-${index}`);
  const DEADLINE_MS = 8_000;
  const STEP_MS = 100;

  async function aFlood(steps = 600) {
    const world = aWorld(Object.fromEntries([...CLUSTERS, 'seen'].map((name) => [name, NEW])));
    let sent = 0;
    const flood = async () => {
      // The flood uses up the look-up of this moment, before any right token comes.
      world.clock.nowMs += STEP_MS;
      for (let name = 0; name < 100; name += 1) await world.check(OLD, `invented-${sent}-${name}`);
      await world.check(OLD, sent % 5 === 0 ? 'seen' : CLUSTERS[sent % 100]);
      sent += 1;
    };
    expect(await world.check(NEW, 'seen')).toBe('right');
    for (let step = 0; step < steps; step += 1) await flood();
    return { ...world, flood };
  }

  type Flood = Awaited<ReturnType<typeof aFlood>>;

  /** Sends the reviews of an API server, which repeats a review after a second if it is asked to, until an answer. */
  async function answeredAfterMs({ check, clock, flood }: Flood, token: string, names: string[]) {
    const startMs = clock.nowMs;
    const waiting = new Set(names);
    const tookMs = new Map<string, number>();
    while (waiting.size > 0 && clock.nowMs - startMs < 2 * DEADLINE_MS) {
      for (const name of waiting) {
        const outcome = await check(token, name);
        expect(outcome).not.toBe('wrong');
        if (outcome !== 'right') continue;
        waiting.delete(name);
        tookMs.set(name, clock.nowMs - startMs);
      }
      for (let ms = 0; ms < 1_000; ms += STEP_MS) await flood();
    }
    return Math.max(...names.map((name) => tookMs.get(name) ?? Number.POSITIVE_INFINITY));
  }

  test('when the flood begins, valid tokens of 100 clusters are accepted before the deadline of a review; five seconds later, they are accepted at once', async () => {
    expect(await answeredAfterMs(await aFlood(1), NEW, CLUSTERS)).toBeLessThan(DEADLINE_MS);
    expect(await answeredAfterMs(await aFlood(50), NEW, CLUSTERS)).toBe(0);
  });

  test('a new token is accepted within two seconds after a rotation, and the previous token is refused within five minutes after its removal', async () => {
    const world = await aFlood();
    const { texts, check, clock, flood } = world;
    texts['seen'] = `${NEW}-next\n${NEW}`;
    expect(await answeredAfterMs(world, `${NEW}-next`, ['seen'])).toBeLessThan(2_000);
    expect(await check(NEW, 'seen')).toBe('right');
    texts['seen'] = `${NEW}-next`;
    const revokedAtMs = clock.nowMs;
    while ((await check(NEW, 'seen')) === 'right') await flood();
    expect(clock.nowMs - revokedAtMs).toBeLessThanOrEqual(300_000);
  });

  test('tokens that a process reads ahead evict no other tokens, even if the stack has more clusters than fit into memory', async () => {
    const names = Array.from({ length: 12_000 }, (_, index) => `one-of-many-${index}`);
    const { check, reads, clock } = aWorld(Object.fromEntries(['seen', ...names].map((name) => [name, NEW])));
    await check(NEW, 'seen');
    for (let name = 0; name < 110; name += 1) await check(OLD, `invented-${name}`);
    for (let step = 0; step < 2_500; step += 1) {
      clock.nowMs += STEP_MS;
      for (let name = 0; name < 2; name += 1) await check(OLD, `invented-${step}-${name}`);
    }
    expect(reads.length).toBeGreaterThan(10_000);
    const before = reads.length;
    expect([await check(NEW, 'seen'), reads.length - before]).toEqual(['right', 0]);
  });
});

test('while the store fails, a token in memory stays valid until a quarter of an hour after its read', async () => {
  const { check, clock, texts } = aWorld({ demo: NEW });
  await check(NEW);
  texts['demo'] = { outcome: 'failed', reason: 'ThrottlingException' };
  clock.nowMs += 300_000;
  expect([await check(NEW), await check(OLD)]).toEqual(['right', 'unknown']);
  clock.nowMs += 600_000;
  expect(await check(NEW)).toBe('unknown');
});

test('if the stored text becomes invalid, the token in memory stays valid, and three requests with it cause only one read', async () => {
  const { check, clock, texts, reads } = aWorld({ demo: NEW });
  expect(await check(NEW)).toBe('right');
  texts['demo'] = 'no token';
  clock.nowMs += 300_000;
  for (let asked = 0; asked < 3; asked++) expect(await check(NEW)).toBe('right');
  expect(reads).toHaveLength(2);
  expect(await check(OLD)).toBe('unknown');
});

test('if a read of the tokens timed out, the next request reads them again', async () => {
  const { check, texts } = aWorld({ demo: { outcome: 'failed', reason: 'AbortError' } });
  expect(await check(NEW, 'demo', AbortSignal.abort())).toBe('unknown');
  texts['demo'] = NEW;
  expect(await check(NEW)).toBe('right');
});

test.each([
  ['secretsManager', 'p/admission/demo'],
  ['ssm', '/p/admission/demo'],
] as const)('the tokens of a cluster are kept in %s as %s', (tokenStore, name) => {
  const settings = { onFailure: 'refuse', deadlineMs: 1, tokenStore, secretsPrefix: 'p/' } as const;
  expect(tokensNameOf(settings, 'demo')).toBe(name);
});
