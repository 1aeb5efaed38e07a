import { createHash, X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { type ApiServerAccess, loadKubeconfigFile } from '../../lib/kubernetes/kubeconfig.ts';
import { pluginRunner } from '../../local/kubeconfig-plugins.ts';

type Outcome = Readonly<Partial<Record<'server' | 'basePath' | 'ca' | 'credential' | 'error', string>>>;
type Verdict = Outcome & { readonly file: string };

const folder = import.meta.dirname;
const linesOf = (file: string) => readFileSync(path.join(folder, file), 'utf8').trim().split('\n');
const verdicts: readonly Verdict[] = linesOf('verdicts.jsonl').map((line) => JSON.parse(line));

/** The files in the table of intended differences. */
const intended = linesOf('README.md').flatMap((line) =>
  [...(line.split(' | ')[2] ?? '').matchAll(/`([a-z0-9-]+)`/g)].map(([, file = '']) => file),
);

function fingerprint(ca: string): string {
  const hash = createHash('sha256');
  for (const one of ca.match(/-----BEGIN[\s\S]*?END CERTIFICATE-----/g) ?? [])
    hash.update(new X509Certificate(one).raw);
  return hash.digest('hex').slice(0, 16);
}

async function outcomeOf({ server, basePath, tls, authHeaders }: ApiServerAccess) {
  const { ca, cert } = tls();
  const { Authorization: token } = await authHeaders();
  const certificate = cert === undefined ? 'none' : 'certificate';
  return {
    server,
    ...(basePath && { basePath }),
    ...(ca && { ca: fingerprint(ca.toString()) }),
    credential: token === undefined ? certificate : 'token',
  };
}

/** Plugins are not installed: a message about one shows that it was chosen. */
const NO_PLUGIN = /the plugin of its user failed: (\S+ does not exist|it gave no token)/;

async function outcome(file: string): Promise<object> {
  process.env['PATH'] = '';
  const runPlugin = pluginRunner({ signal: new AbortController().signal, say: () => undefined });
  return loadKubeconfigFile(path.join(folder, `${file}.kubeconfig`), { runPlugin }).then(outcomeOf, (error) => {
    if (NO_PLUGIN.test(error.message)) return { credential: 'plugin' };
    return { error: error.code };
  });
}

function expectedOf({ error, credential, ...read }: Outcome): object {
  if (error !== undefined) return { error: 'BadKubeconfig' };
  return credential === 'plugin' ? { credential } : { ...read, credential };
}

test('verdicts.jsonl has the result of client-go for each kubeconfig, and each documented difference names one of these kubeconfigs', () => {
  const files = readdirSync(folder).filter((name) => name.endsWith('.kubeconfig'));
  const judged = verdicts.map(({ file }) => `${file}.kubeconfig`);
  expect(judged.toSorted()).toEqual(files.toSorted());
  expect(judged).toEqual(expect.arrayContaining(intended.map((file) => `${file}.kubeconfig`)));
  expect(new Set(intended).size).toBe(intended.length);
});

const ALL = verdicts.map(({ file, ...verdict }) => [file, verdict] as const);

test.each(ALL)('kubeconfig %s has the result of client-go, or a documented difference', async (file, verdict) => {
  const isSame = expect(await outcome(file));
  if (intended.includes(file)) isSame.not.toEqual(expectedOf(verdict));
  else isSame.toEqual(expectedOf(verdict));
});
