import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { HttpClient, type HttpRequest } from '../../lib/kubernetes/http-client.ts';

export type RawRequests = ReturnType<typeof rawRequests>;

const { signal } = new AbortController();

/**
 * Returns functions that send requests to an API server without a client library, for the set-up and the checks of tests.
 * @param server `caFile` is read again until the first answer, because a starting server may still be writing it
 */
export function rawRequests(server: { url: string; caFile: string; token: string }) {
  let client: HttpClient | undefined;
  let answered = false;
  const trustingClient = () => {
    if (answered && client) return client;
    client?.destroy();
    const tls = { ca: readFileSync(server.caFile), rejectUnauthorized: true };
    client = new HttpClient(server.url, { tls, connections: 100 });
    return client;
  };
  /**
   * Sends one request. The body is JSON, or a JSON merge patch for a PATCH. The body of the answer is parsed JSON, or text if
   * it is not JSON. Rejects only if no answer comes.
   */
  const request = async <T = unknown>(method: HttpRequest['method'], path: string, body?: object) => {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const headers = { authorization: `Bearer ${server.token}`, 'content-type': type };
    const sent = { method, path, headers, ...(body && { body: JSON.stringify(body) }) };
    const reply = await trustingClient().request(sent, signal);
    answered = true;
    const whole = await text(Readable.from(reply.body));
    const isJson = reply.headers['content-type']?.startsWith('application/json') ?? false;
    return { status: reply.status, body: (isJson ? JSON.parse(whole) : whole) as T };
  };
  return {
    request,
    /** Sends one request, and returns the body of the answer. @throws Error if the API server refuses the request */
    async send<T = unknown>(...sent: Parameters<typeof request>): Promise<T> {
      const { status, body } = await request<T>(...sent);
      if (status < 300) return body;
      throw new Error(`${sent[0]} ${sent[1]} was answered by ${status}: ${JSON.stringify(body)}`);
    },
    async close() {
      client?.destroy();
    },
  };
}
