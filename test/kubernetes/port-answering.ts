import { clusterPort } from '../../lib/kubernetes/api-server-cluster.ts';
import type { HttpReply } from '../../lib/kubernetes/http-client.ts';
import type { ApiRequest, Transport } from '../../lib/kubernetes/transport.ts';

export const ref = { kind: 'Service', namespace: 'default', name: 'kubernetes' } as const;
export const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'kubernetes', namespace: 'default', uid: 'u-1', resourceVersion: '7' },
  spec: {},
};

export function reply(status: number, body: unknown): HttpReply {
  return { status, headers: { 'content-type': 'application/json' }, body: [Buffer.from(JSON.stringify(body))] };
}

export const PROTOBUF = 'application/vnd.kubernetes.protobuf';

/** Returns a reply in protobuf, in pieces of this size. */
export function protobuf(bytes: Uint8Array, status = 200, size = bytes.length || 1): HttpReply {
  const starts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, piece) => piece * size);
  const body = starts.map((at) => bytes.subarray(at, at + size));
  return { status, headers: { 'content-type': PROTOBUF }, body };
}

/** Returns the reply to a failed request, which contains a `Status`. */
export function failed(code: number, reason: string, message = reason, details: object = {}): HttpReply {
  return reply(code, { kind: 'Status', apiVersion: 'v1', code, reason, message, details });
}

/**
 * Returns a Kubernetes client whose transport returns these replies in turn, and after the last one always the last one. Waits
 * end at once.
 */
export function portAnswering(...answers: readonly (HttpReply | Error)[]) {
  const requests: ApiRequest[] = [];
  const waits: number[] = [];
  const transport: Transport = async (request) => {
    requests.push(request);
    const answer = answers[Math.min(requests.length, answers.length) - 1];
    if (answer === undefined || answer instanceof Error) throw answer ?? new Error('no answers');
    return answer;
  };
  const port = portOver(transport, { sleep: async (ms) => void waits.push(ms) });
  return { port, requests, waits };
}

export function portOver(transport: Transport, options: Partial<Parameters<typeof clusterPort>[0]> = {}) {
  const deadline = new AbortController().signal;
  const sleep = async () => undefined;
  return clusterPort({ transport, server: 'https://10.0.0.1:6443', deadline, userAgent: 'test', sleep, ...options });
}
