import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { HttpClient, type HttpRequest } from '../../lib/kubernetes/http-client.ts';

export type RawRequests = ReturnType<typeof rawRequests>;

const { signal } = new AbortController();

/**
 * Sends requests to an API server past any client library, for what a test arranges and looks up.
 * @param server `caFile` is read until the first answer: a server that starts may just be writing it
 */
export function rawRequests(server: { url: string; caFile: string; token: string }) {
  let client: HttpClient | undefined;
  let answered = false;
  const trustingClient = () => {
    if (answered && client) return client;
    client?.destroy();
    client = new HttpClient(server.url, {
      tls: { ca: readFileSync(server.caFile), rejectUnauthorized: true },
      connections: 100,
    });
    return client;
  };
  return {
    /**
     * A body goes as JSON, that of a PATCH as a JSON merge patch. The answer's body is what its JSON says, or its text
     * when it is not JSON. Rejects only when there is no answer.
     */
    async request<T = unknown>(method: HttpRequest['method'], path: string, body?: object) {
      const headers = {
        authorization: `Bearer ${server.token}`,
        'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
      };
      const request = { method, path, headers, ...(body && { body: JSON.stringify(body) }) };
      const reply = await trustingClient().request(request, signal);
      answered = true;
      const whole = await text(reply.body);
      const isJson = reply.headers['content-type']?.startsWith('application/json') ?? false;
      return { status: reply.status, body: (isJson ? JSON.parse(whole) : whole) as T };
    },
    async close() {
      client?.destroy();
    },
  };
}
