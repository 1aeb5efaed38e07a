import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { httpsProber } from '../../lib/kubernetes/https-prober.ts';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { CredentialMask } from '../../lib/kubernetes/mask-credential.ts';
import { BytesInFlight, readWhole } from '../../lib/kubernetes/reply-bounds.ts';
import { ApiServerConnections } from '../../lib/kubernetes/transport.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { startFaultServer } from '../support/api-fault-server.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';
import { runs } from '../support/properties.ts';

const authority = makeAuthority('the cluster');
const TOKEN = 'opaque-0123456789';
const read = async (body: Parameters<typeof readWhole>[0]) =>
  Buffer.from(await readWhole(body, 'the test', new BytesInFlight())).toString();

test('a credential that an API server repeats in its reply does not appear in errors, headers or probe results', async () => {
  const server = await startFaultServer(
    ({ headers }) => {
      const said = `you sent ${headers.authorization}`;
      return { status: 403, headers: { warning: `299 - "${headers.authorization}"` }, body: { message: said } };
    },
    authority.issue(['127.0.0.1']),
  );
  const access = await parseKubeconfig(
    kubeconfigTo(server.url, { ca: authority.ca, user: { token: TOKEN } }),
    'of the test',
  );
  const connections = new ApiServerConnections();
  const { signal } = new AbortController();
  const reply = await connections.transport(access)({ method: 'GET', path: '/', headers: {} }, signal);
  const probe = httpsProber({ access, deadline: signal, userAgent: 'test' });
  const probed = await probe({ url: server.url, authenticate: true });
  const seen = JSON.stringify([reply.headers, await read(reply.body), probed]);
  await connections.close();
  await server.stop();
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
  const body = await read(mask.body([Buffer.from(`Basic ${form.slice(0, 9)}`), Buffer.from(`${form.slice(9)}.`)]));
  expect(body).toMatch(/^Basic .{0,8}\*{20,}.{0,4}\.$/);
  expect(body).toHaveLength(`Basic ${form}.`.length);
  expect(mask.headers({ warning: form })['warning']).toMatch(/^.{0,8}\*{20,}.{0,4}$/);
});

test('a CredentialMask masks a token even if it is split between pieces of a reply, and changes nothing else', async () => {
  const token = 'opaque-0123456789';
  const word = fc.constantFrom(token, 'opaque-', '0123456789', '"', 'é');
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
      expect(await read(mask.body(chunks))).toBe(whole.toString().replaceAll(token, '*'.repeat(token.length)));
    }),
  );
});

test('a CredentialMask masks a token whatever characters of it are escaped in JSON, even in JSON within JSON', async () => {
  const token = 'a/b"c<d>e&f-0123';
  const escapes = (character: string, how: number) => {
    const code = character.charCodeAt(0).toString(16).padStart(4, '0');
    const forms = [
      character,
      `\\u${code}`,
      `\\u${code.toUpperCase()}`,
      `\\\\u${code}`,
      `\\${character}`,
      `\\\\\\${character}`,
    ];
    const isShort = character === '/' || character === '"';
    return forms[how % (isShort ? 6 : 4)] ?? character;
  };
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(5), { minLength: token.length, maxLength: token.length }),
      fc.constantFrom('', 'a/b', 'é', '\\u00e9', '\\n', '{"a": "'),
      fc.nat(40),
      async (hows, before, cut) => {
        const written = [...token].map((character, index) => escapes(character, hows[index] ?? 0)).join('');
        const whole = Buffer.from(`${before}${written}" ${written}`);
        const mask = new CredentialMask({ Authorization: `Bearer ${token}` });
        const seen = await read(
          mask.body([whole.subarray(0, cut), whole.subarray(cut, 2 * cut), whole.subarray(2 * cut)]),
        );
        expect(seen).toHaveLength(whole.toString().length);
        expect(seen.replaceAll('*', '')).toBe(`${before}" `);
      },
    ),
    { numRuns: runs(500) },
  );
});
