import { readFileSync } from 'node:fs';
import { Agent, request as httpRequest } from 'undici';

/** Requests to an API server past any client library, for what a test arranges and looks up. */
export interface RawRequests {
  /**
   * A body goes as JSON, that of a PATCH as a JSON merge patch. The answer's body is what its JSON says, or its text
   * when it is not JSON. Rejects only when there is no answer.
   */
  request<T = unknown>(method: Method, path: string, body?: object): Promise<{ status: number; body: T }>;
  close(): Promise<void>;
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** @param server `caFile` is read until the first answer: a server that starts may just be writing it. */
export function rawRequests(server: { url: string; caFile: string; token: string }): RawRequests {
  let agent: Agent | undefined;
  let answered = false;
  const trustingAgent = async () => {
    if (answered && agent) return agent;
    await agent?.destroy();
    agent = new Agent({ connect: { ca: readFileSync(server.caFile) } });
    return agent;
  };
  return {
    async request<T>(method: Method, path: string, body?: object) {
      const reply = await httpRequest(server.url + path, {
        dispatcher: await trustingAgent(),
        method,
        headers: {
          authorization: `Bearer ${server.token}`,
          'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
        },
        ...(body && { body: JSON.stringify(body) }),
      });
      answered = true;
      const isJson = String(reply.headers['content-type']).startsWith('application/json');
      return { status: reply.statusCode, body: (isJson ? await reply.body.json() : await reply.body.text()) as T };
    },
    async close() {
      await agent?.destroy();
    },
  };
}
