import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { CredentialMask } from '../../lib/kubernetes/mask-credential.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { startFaultServer } from '../support/api-fault-server.ts';
import { runs } from '../support/properties.ts';
import { accessTo, proberWith, textOf, transportWith } from '../support/transport-to.ts';

const authority = makeAuthority('the cluster');
const TOKEN = 'opaque-0123456789';

test('a credential that an API server repeats in its reply does not appear in headers, bodies or probe results', async () => {
  const server = await startFaultServer(
    ({ headers }) => {
      const said = `you sent ${headers.authorization}`;
      return { status: 403, headers: { warning: `299 - "${headers.authorization}"` }, body: { message: said } };
    },
    authority.issue(['127.0.0.1']),
  );
  afterThisTest(server.stop);
  const access = await accessTo(server.url, { ca: authority.ca, user: { token: TOKEN } });
  const { signal } = new AbortController();
  const reply = await transportWith(access)({ method: 'GET', path: '/', headers: {} }, signal);
  const probed = await proberWith(access)({ url: server.url, authenticate: true });
  const seen = JSON.stringify([reply.headers, await textOf(reply.body), probed]);
  expect(server.requests.map(({ headers }) => headers['authorization'])).toHaveLength(2);
  expect(seen).toContain('you sent');
  expect(seen).not.toContain(TOKEN);
});

const html = (text: string, quote: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', quote);

test.each<[string, (token: string) => string]>([
  ['escaped for a URL', encodeURIComponent],
  ['escaped for HTML', (token) => html(token, '&quot;')],
  ['escaped for HTML by Go', (token) => html(token, '&#34;')],
  ...['', 'a', 'me', 'admin'].map((user): [string, (token: string) => string] => [
    `in the base64 of "${user}:token"`,
    (token) => Buffer.from(`${user}:${token}`).toString('base64'),
  ]),
])('a CredentialMask masks a token in each form in which a proxy prints it: %s', async (_, formOf) => {
  const token = 'a+b/c=d&e<f"0123456789';
  const form = formOf(token);
  const mask = new CredentialMask({ Authorization: `Bearer ${token}` });
  const body = await textOf(mask.body([Buffer.from(`Basic ${form.slice(0, 9)}`), Buffer.from(`${form.slice(9)}.`)]));
  expect(body).toMatch(/^Basic .{0,8}\*{20,}.{0,4}\.$/);
  expect(body).toHaveLength(`Basic ${form}.`.length);
  expect(mask.headers({ warning: form })['warning']).toMatch(/^.{0,8}\*{20,}.{0,4}$/);
});

test('a CredentialMask masks a token even if it is split between pieces of a reply, and changes nothing else', async () => {
  const token = 'ab-ab-ab-ac-0';
  const word = fc.constantFrom(token, 'ab-', 'ab-ab-ac', '-0', '"', 'é');
  await fc.assert(
    fc.asyncProperty(fc.array(word), fc.array(fc.nat(30)), async (words, cuts) => {
      const whole = Buffer.from(words.join(''));
      const chunks: Uint8Array[] = [];
      let at = 0;
      for (const cut of [...cuts, whole.length]) {
        chunks.push(whole.subarray(at, at + cut));
        at += cut;
      }
      const mask = new CredentialMask({ Authorization: `Bearer ${token}` });
      expect(await textOf(mask.body(chunks))).toBe(whole.toString().replaceAll(token, '*'.repeat(token.length)));
    }),
  );
});

test('a CredentialMask holds back only bytes that may be the beginning of the token, because a reply may break off', async () => {
  const mask = new CredentialMask({ Authorization: `Bearer ${TOKEN}` });
  const { value } = await mask.body([Buffer.from('[-]shutdown failed: opaque')]).next();
  expect(String(value)).toBe('[-]shutdown failed: ');
});

test('a CredentialMask masks a token even if any of its characters are escaped in JSON, or in JSON within JSON', async () => {
  const token = 'a/b"c<d>e&f-0123';
  const escapes = (character: string, how: number) => {
    const code = character.charCodeAt(0).toString(16).padStart(4, '0');
    const forms = [character, `\\u${code}`, `\\u${code.toUpperCase()}`, `\\\\u${code}`];
    if (character === '/' || character === '"') forms.push(`\\${character}`, `\\\\\\${character}`);
    return forms[how % forms.length] ?? character;
  };
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(5), { minLength: token.length, maxLength: token.length }),
      fc.constantFrom('', 'a/b', 'é', '\\u00e9', '\\n', '{"a": "'),
      fc.nat(40),
      fc.boolean(),
      async (hows, before, cut, isList) => {
        const written = [...token].map((character, index) => escapes(character, hows[index] ?? 0)).join('');
        const whole = Buffer.from(`${before}${written}" ${written}`);
        const mask = new CredentialMask({ Authorization: `Bearer ${token}` });
        const pieces = [whole.subarray(0, cut), whole.subarray(cut, 2 * cut), whole.subarray(2 * cut)];
        const seen = await textOf(mask.body(pieces, isList));
        expect(seen).toHaveLength(whole.toString().length);
        expect(seen.replaceAll('*', '')).toBe(`${before}" `);
      },
    ),
    { numRuns: runs(500) },
  );
});
