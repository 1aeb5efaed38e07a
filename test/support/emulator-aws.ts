export type Aws = ReturnType<typeof awsCalls>;

export const REGION = 'us-east-1';
export const ACCOUNT = '123456789012';

/**
 * Returns functions that call AWS over its wire protocols, for the set-up and the checks of tests. Calls are not signed: the
 * emulator reads only the service from a signature.
 */
export function awsCalls(endpoint: string) {
  const call = async (service: string, path: string, init: RequestInit) => {
    const credential = `Credential=test/20260101/${REGION}/${service}/aws4_request`;
    const headers = {
      ...Object.fromEntries(new Headers(init.headers)),
      authorization: `AWS4-HMAC-SHA256 ${credential}, SignedHeaders=host, Signature=0`,
    };
    const reply = await fetch(endpoint + path, { ...init, headers, signal: AbortSignal.timeout(30_000) });
    const body = Buffer.from(await reply.arrayBuffer());
    if (reply.ok) return body;
    throw new Error(`${service} answered ${reply.status} to ${path}: ${body.toString().slice(0, 1000)}`);
  };
  return {
    endpoint,
    /** Calls a service with a JSON protocol, for example `json('sqs', 'AmazonSQS.ReceiveMessage', {...})`. */
    async json<T = unknown>(service: string, target: string, body: object): Promise<T> {
      const headers = { 'x-amz-target': target, 'content-type': 'application/x-amz-json-1.0' };
      const reply = await call(service, '/', { method: 'POST', headers, body: JSON.stringify(body) });
      return reply.length === 0 ? ({} as T) : JSON.parse(reply.toString());
    },
    /** Calls a service with the form and XML protocol, and returns the text of the answer. */
    async form(service: string, fields: Readonly<Record<string, string>>) {
      return (await call(service, '/', { method: 'POST', body: new URLSearchParams(fields) })).toString();
    },
    /** Sends a PUT to a service with a REST protocol. */
    async put(service: string, path: string, body: Uint8Array | string) {
      await call(service, path, { method: 'PUT', body: Buffer.from(body) });
    },
    /** Sends a GET to a service with a REST protocol, and returns the bytes of the answer. */
    get: (service: string, path: string): Promise<Buffer> => call(service, path, {}),
  };
}

/** Returns the texts of all elements with this name. They must not contain other elements. */
export function texts(xml: string, element: string): string[] {
  return [...xml.matchAll(new RegExp(`<${element}>([^<]*)</${element}>`, 'g'))].map(([, text = '']) => unescaped(text));
}

function unescaped(text: string): string {
  const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' };
  return text
    .replace(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)))
    .replace(/&(lt|gt|quot|apos|amp);/g, (_, name: string) => entities[name] ?? '');
}
