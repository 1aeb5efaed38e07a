import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';
import { admission } from '../../lib/admission/admission.ts';
import { startDeadline } from '../../lib/runtime/deadline.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { urlEvent, writeAdmissionFiles } from '../../local/serve-admission.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { aDispatchWorld } from '../support/dispatch-world.ts';
import { CLUSTER } from '../support/handlers.ts';
import { serve } from '../support/serve.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const TOKEN = 'api-servers-of-these-tests-have-no-flag-for-it';
const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
const PROBE = '/api/v1/namespaces/default/services?dryRun=All';
const LIMIT_MS = 30_000;

/** Sends a POST request to an API server, and returns the status. */
export type Post = (path: string, body: object) => Promise<number>;

/**
 * Serves the webhook of a cluster whose Services get their addresses and ports from the table, and applies it. Returns when the API
 * server calls it. The API servers of upstream's tests send no token, so the webhook gets it here.
 * @returns a function that ends it
 */
export async function serveTableWebhook(table: KeyValueTable, post: Post): Promise<() => Promise<void>> {
  const { environment, telemetry } = aDispatchWorld({ nowMs: Date.now, startDeadline, table: () => table });
  const handler = admission({
    settings: { onFailure: 'refuse', deadlineMs: 8_000, tokenStore: 'secretsManager', secretsPrefix: '' },
    readTokens: async () => ({ outcome: 'read', text: TOKEN }),
  });
  const authority = makeAuthority('admission of the tests');
  const answer = async (incoming: IncomingMessage, response: ServerResponse) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${TOKEN}` };
    const event = urlEvent({ method: 'POST', url: `/${CLUSTER}`, headers }, await text(incoming));
    const reply = await handler(event, { environment, getRemainingTimeInMillis: () => 30_000 });
    response.writeHead(reply.statusCode, reply.headers).end(reply.body);
  };
  const server = await serve(
    (incoming, response) => void answer(incoming, response).catch(() => response.destroy()),
    authority.issue(['127.0.0.1']),
  );
  const port = Number(new URL(server.url).port);
  const settings = { cluster: CLUSTER, port, token: TOKEN, ca: authority.ca };
  const { webhook } = await writeAdmissionFiles(temporaryFolder(), settings);
  const status = await post(CONFIGURATIONS, parse(await readFile(webhook, 'utf8')));
  if (status !== 201) throw new Error(`the API server answered ${status} to the webhook's configuration`);
  const endsAtMs = Date.now() + LIMIT_MS;
  while (telemetry.invocations.length === 0) {
    if (Date.now() > endsAtMs) throw new Error(`the API server has not called the webhook in ${LIMIT_MS} ms`);
    await post(PROBE, { metadata: { name: 'probe' }, spec: { ports: [{ port: 80 }] } });
    await sleep(200);
  }
  return server.close;
}

/** Sends requests to an API server whose certificate is for `servername`. */
export function poster(access: { port: number; ca: string; token: string; servername: string }): Post {
  const { port, ca, token, servername } = access;
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  return (path, body) => {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const sent = request({ host: '127.0.0.1', port, ca, servername, path, method: 'POST', headers }, (reply) => {
      reply.resume().once('end', () => resolve(reply.statusCode ?? 0));
    });
    sent.once('error', reject).end(JSON.stringify(body));
    return promise;
  };
}
