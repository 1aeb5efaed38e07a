import { expect, test } from '@jest/globals';
import { tokensNameOf } from '../../lib/admission/settings.ts';
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
  const tokens = new ClusterTokens({
    nameOf: (cluster) => `p/admission/${cluster}`,
    nowMs: () => clock.nowMs,
    read: async (name) => {
      reads.push(name);
      const found = texts[name.replace('p/admission/', '')] ?? { outcome: 'absent' };
      return typeof found === 'string' ? { outcome: 'read', text: found } : found;
    },
  });
  const check = async (token: string, cluster = 'demo') =>
    (await tokens.check(cluster, token, new AbortController().signal)).outcome;
  return { clock, reads, check, texts };
}

test('a secret can contain one or two valid tokens, one per line', async () => {
  const { check } = aWorld({ demo: `${NEW}\n  ${OLD}  \n\n`, other: `${OLD}\r\n` });
  expect([await check(NEW), await check(OLD), await check(OLD, 'other')]).toEqual(['right', 'right', 'right']);
});

test('a token of one cluster is not valid for another', async () => {
  const { check } = aWorld({ demo: NEW, other: OLD });
  expect([await check(NEW, 'other'), await check(OLD, 'demo')]).toEqual(['wrong', 'wrong']);
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

test('a check of a wrong token reads secrets as often for a cluster with tokens as for a cluster that does not exist', async () => {
  const readsOf = async (cluster: string) => {
    const { check, reads, clock } = aWorld({ demo: NEW });
    const counts: number[] = [];
    for (const waitedMs of [0, 0, 9_999, 1, 0, 300_000, 0]) {
      clock.nowMs += waitedMs;
      // The API server of the cluster sends the right token all the time.
      expect(await check(NEW)).toBe('right');
      const before = reads.length;
      expect(await check(OLD, cluster)).toBe('wrong');
      counts.push(reads.length - before);
    }
    return counts;
  };
  expect(await readsOf('invented')).toEqual(await readsOf('demo'));
  expect(await readsOf('demo')).toEqual([1, 0, 0, 1, 0, 1, 0]);
});

test('wrong tokens, whether or not their cluster exists, cause a limited number of reads and do not evict valid tokens from memory', async () => {
  const { check, reads, clock } = aWorld({ demo: NEW, other: NEW });
  await check(NEW);
  for (let name = 0; name < 3_000; name += 1) expect(await check(OLD, `invented-${name}`)).toBe('wrong');
  expect(reads).toHaveLength(1_000);
  clock.nowMs += 10_000;
  for (let name = 0; name < 3_000; name += 1) await check(OLD, `invented-${name}`);
  for (let guess = 0; guess < 10; guess += 1) await check(`${OLD}-${guess}`);
  expect(reads).toHaveLength(1_020);

  expect(await check(NEW)).toBe('right');
  expect(reads).toHaveLength(1_020);
  clock.nowMs += 500;
  expect(await check(NEW, 'other')).toBe('right');
  expect(reads).toHaveLength(1_021);
});

test('a new token is valid soon after it is written', async () => {
  const { check, clock, texts } = aWorld({ demo: OLD });
  await check(OLD);
  texts['demo'] = `${NEW}\n${OLD}`;
  clock.nowMs += 10_000;
  expect([await check(NEW), await check(OLD)]).toEqual(['right', 'right']);
  texts['demo'] = NEW;
  clock.nowMs += 300_000;
  expect([await check(NEW), await check(OLD)]).toEqual(['right', 'wrong']);
});

test('known tokens stay valid for a quarter of an hour while their store fails', async () => {
  const { check, clock, texts } = aWorld({ demo: NEW });
  await check(NEW);
  texts['demo'] = { outcome: 'failed', reason: 'ThrottlingException' };
  clock.nowMs += 300_000;
  expect([await check(NEW), await check(OLD)]).toEqual(['right', 'unknown']);
  clock.nowMs += 600_000;
  expect(await check(NEW)).toBe('unknown');
});

test('a failing store is read once in ten seconds, whatever the number of requests', async () => {
  const { check, clock, texts, reads } = aWorld({ demo: { outcome: 'failed', reason: 'ThrottlingException' } });
  for (let asked = 0; asked < 3; asked++) expect(await check(NEW)).toBe('unknown');
  expect(reads).toHaveLength(1);
  clock.nowMs += 10_000;
  texts['demo'] = NEW;
  expect(await check(NEW)).toBe('right');
  texts['demo'] = 'no token';
  clock.nowMs += 300_000;
  for (const token of [OLD, NEW, OLD, NEW]) await check(token);
  expect(reads).toHaveLength(3);
  expect([await check(NEW), await check(OLD)]).toEqual(['right', 'unknown']);
});

test('if a read of the tokens timed out, the next request reads them again', async () => {
  const controller = new AbortController();
  const answers: SecretText[] = [
    { outcome: 'failed', reason: 'AbortError' },
    { outcome: 'read', text: NEW },
  ];
  const read = async () => answers.shift() ?? { outcome: 'absent' as const };
  const tokens = new ClusterTokens({ read, nameOf: (cluster) => cluster, nowMs: () => 0 });
  controller.abort();
  const check = (signal: AbortSignal) => tokens.check('demo', NEW, signal);
  expect(await check(controller.signal)).toMatchObject({ outcome: 'unknown' });
  expect(await check(new AbortController().signal)).toEqual({ outcome: 'right' });
});

test.each([
  ['secretsManager', 'p/admission/demo'],
  ['ssm', '/p/admission/demo'],
] as const)('the tokens of a cluster are kept in %s as %s', (tokenStore, name) => {
  const settings = { onFailure: 'refuse', deadlineMs: 1, tokenStore, secretsPrefix: 'p/' } as const;
  expect(tokensNameOf(settings, 'demo')).toBe(name);
});
