import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { parse, stringify } from 'yaml';
import { type AdmissionHandler, admission } from '../lib/admission/admission.ts';
import type { TableEnvironment } from '../lib/runtime/environment.ts';
import { codeOf } from '../lib/util/values.ts';
import { ownFolder, replaceFile } from './data-folder.ts';
import { StartError, shellWord } from './local-cluster.ts';
import { answering, bearerOf, type LocalReply, listenOnLoopback, newRunKey, refusalOf } from './local-server.ts';
import { type CertifiedKey, makeAuthority } from './stand-in/identity.ts';

const SHIPPED = path.join(import.meta.dirname, '..', 'deploy');
const HOST = '127.0.0.1';
/**
 * The time after which idle connections end. API servers end idle connections after 90 s. If this server ended a connection
 * first, the next review on this connection could fail.
 */
const KEEP_ALIVE_MS = 100_000;

/**
 * Serves the admission webhook of one cluster with a new token and a new certificate. `notes` are the next steps for users.
 * @throws StartError if the folder is not safe or the port is not free
 */
export async function openAdmission(
  environment: TableEnvironment,
  { cluster, folder, port }: { readonly cluster: string; readonly folder: string; readonly port: number },
) {
  const authority = makeAuthority('kbctl run');
  const token = newRunKey();
  const files = await writeAdmissionFiles(folder, { cluster, port, token, ca: authority.ca });
  const handler = admission({
    // The deadline is below the timeout of the webhook, which is 10 s.
    settings: { onFailure: 'refuse', deadlineMs: 8_000, tokenStore: 'secretsManager', secretsPrefix: '' },
    readTokens: async () => ({ outcome: 'read', text: token }),
  });
  const close = await serveAdmission(handler, environment, { certified: authority.issue([HOST]), port, token });
  const notes = [
    `The admission webhook is at https://${HOST}:${port}/${cluster}. To use it, start the API server of this machine with`,
    `  --admission-control-config-file=${files.config}`,
    'then apply the webhook, again after each start of this process, and delete it when this process has ended:',
    `  kubectl apply -f ${shellWord(files.webhook)}`,
    `  kubectl delete -f ${shellWord(files.webhook)}`,
  ];
  return { notes, [Symbol.asyncDispose]: close };
}

/**
 * Writes the files of `deploy/` for an API server on this machine to `folder`, which belongs to this user. `ca` is PEM.
 * @returns the files for the flag `--admission-control-config-file` and for `kubectl apply -f`
 * @throws StartError if the folder is not safe
 */
export async function writeAdmissionFiles(
  folder: string,
  { cluster, port, token, ca }: Record<'cluster' | 'token' | 'ca', string> & { readonly port: number },
) {
  await ownFolder(folder);
  const file = (name: string) => path.join(folder, name);
  const config = await shipped('admission-config.yaml');
  config.plugins[0].configuration.kubeConfigFile = file('kubeconfig.yaml');
  const kubeconfig = await shipped('admission-kubeconfig.yaml');
  kubeconfig.users[0].name = `${HOST}:${port}`;
  kubeconfig.users[0].user.tokenFile = file('token');
  const webhook = await shipped('admission-webhook.yaml');
  const caBundle = Buffer.from(ca).toString('base64');
  webhook.webhooks[0].clientConfig = { url: `https://${HOST}:${port}/${cluster}`, caBundle };
  const contents = {
    token: `${token}\n`,
    'kubeconfig.yaml': stringify(kubeconfig),
    'config.yaml': stringify(config),
    'webhook.yaml': stringify(webhook),
  };
  for (const [name, content] of Object.entries(contents)) await replaceFile(file(name), content);
  return { config: file('config.yaml'), webhook: file('webhook.yaml') };
}

// biome-ignore lint/suspicious/noExplicitAny: files of this repository, whose fields the tests check
async function shipped(name: string): Promise<any> {
  return parse(await readFile(path.join(SHIPPED, name), 'utf8'));
}

/**
 * Serves the handler over HTTPS on the loopback, in place of a function URL. Refuses a request without the token before it reads
 * the body. Returns a function that ends the server.
 * @throws StartError if the port is not free
 */
export async function serveAdmission(
  handler: AdmissionHandler,
  environment: TableEnvironment,
  { certified, port, token }: { readonly certified: CertifiedKey; readonly port: number; readonly token: string },
): Promise<() => Promise<void>> {
  const rules = { host: `${HOST}:${port}`, key: token, keyOf: bearerOf, mediaTypes: ['application/json'] };
  const answer = async (request: IncomingMessage): Promise<LocalReply> => {
    const refusal = refusalOf(request, rules);
    if (refusal) return { status: refusal.status, headers: { connection: 'close' }, body: refusal.message };
    const event = urlEvent(request, await text(request));
    const { statusCode, ...reply } = await handler(event, { environment, getRemainingTimeInMillis: () => 30_000 });
    return { status: statusCode, ...reply };
  };
  const server = createServer({ ...certified, keepAliveTimeout: KEEP_ALIVE_MS }, answering(answer));
  const { close } = await listenOnLoopback(server, port).catch((error: unknown) => {
    throw new StartError(3, `Port ${port} cannot be used (${codeOf(error)}): name a free one with --admission.`);
  });
  return close;
}

/** Returns the event of a function URL (payload format 2.0), with only the fields that the handler reads. */
export function urlEvent(
  { method, url = '/', headers }: Partial<Pick<IncomingMessage, 'method' | 'url' | 'headers'>>,
  body: string,
) {
  const { pathname: rawPath, search } = new URL(url, `https://${HOST}`);
  return { rawPath, rawQueryString: search.slice(1), headers, body, requestContext: { http: { method } } };
}
