import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { parse, stringify } from 'yaml';
import { type AdmissionHandler, admission } from '../lib/admission/admission.ts';
import type { TableEnvironment } from '../lib/runtime/environment.ts';
import { codeOf, defined } from '../lib/util/values.ts';
import { ownFolder, replaceFile, shellWord } from './data-folder.ts';
import { bearerOf, newRunKey, refusalOf } from './local-request.ts';
import { listenOnLoopback } from './loopback-server.ts';
import { type CertifiedKey, makeAuthority } from './stand-in/identity.ts';
import { StartError } from './start-options.ts';

const SHIPPED = path.join(import.meta.dirname, '..', 'deploy');
const HOST = '127.0.0.1';
/**
 * The time after which idle connections end. API servers end them after 90 s. If this server ended a connection first, the next
 * review on it could fail.
 */
const KEEP_ALIVE_MS = 100_000;

/**
 * Serves the admission webhook of one cluster, with a new token and a new certificate. `notes` are the next steps for users.
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
 * Fills in the admission files of `deploy/` for an API server on this machine, and writes them to `folder`, which belongs to
 * this user. `ca` is PEM.
 * @returns the files for the API server's flag `--admission-control-config-file`, and for `kubectl apply -f`
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
 * Serves the handler over HTTPS on the loopback, in place of a function URL. Requests without the token are refused
 * before their body is read.
 * @returns a function that ends the server
 * @throws StartError if the port is not free
 */
export async function serveAdmission(
  handler: AdmissionHandler,
  environment: TableEnvironment,
  { certified, port, token }: { readonly certified: CertifiedKey; readonly port: number; readonly token: string },
): Promise<() => Promise<void>> {
  const rules = { host: `${HOST}:${port}`, key: token, keyOf: bearerOf, mediaTypes: ['application/json'] };
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const refusal = refusalOf(request, rules);
    if (refusal !== undefined) {
      response.writeHead(refusal.status, { connection: 'close' }).end(refusal.message);
      return;
    }
    const body = await text(request);
    const { pathname, search } = new URL(request.url ?? '/', `https://${HOST}`);
    const { method = '', headers } = request;
    const event = urlEvent({ method, path: pathname, query: search.slice(1), headers, body });
    const reply = await handler(event, { environment, getRemainingTimeInMillis: () => 30_000 });
    response.writeHead(reply.statusCode, reply.headers).end(reply.body);
  };
  const server = createServer({ ...certified, keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    // A caller that hangs up gets no answer.
    answer(request, response).catch(() => response.destroy());
  });
  const { close } = await listenOnLoopback(server, port).catch((error: unknown) => {
    throw new StartError(3, `Port ${port} cannot be used (${codeOf(error)}): name a free one with --admission.`);
  });
  return close;
}

export interface UrlRequest {
  readonly method?: string;
  readonly path?: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly body?: string;
  readonly cameAtMs?: number;
}

/** Returns the event of a function URL (payload format 2.0), with only the fields that the handler reads. */
export function urlEvent(request: UrlRequest): object {
  const { method = 'POST', path = '/demo', query = '', headers = {}, body = '', cameAtMs } = request;
  return {
    version: '2.0',
    rawPath: path,
    rawQueryString: query,
    headers,
    requestContext: { http: { method, path }, ...defined({ timeEpoch: cameAtMs }) },
    ...(body !== '' && { body }),
    isBase64Encoded: false,
  };
}
