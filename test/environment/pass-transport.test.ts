import { expect, test } from '@jest/globals';
import { renewingTransport } from '../../lib/environment/pass-transport.ts';
import type { ApiServerAccess } from '../../lib/kubernetes/kubeconfig.ts';

const { signal } = new AbortController();
const access = (context: string): ApiServerAccess => ({
  server: 'https://10.0.0.1:6443',
  basePath: '',
  context,
  skipTlsVerify: false,
  tls: () => ({ rejectUnauthorized: true }),
  authHeaders: async () => ({}),
});
const [old, newer] = [access('old'), access('newer')];

test('the body of a reply 401 is closed before the request is repeated, so that its connection is free', async () => {
  const events: string[] = [];
  async function* refusal() {
    try {
      yield Buffer.from('Unauthorized');
      yield Buffer.from('and more');
    } finally {
      events.push('ended');
    }
  }
  const kubeconfig = {
    current: () => old,
    newerThan: async () => newer,
    forget: () => undefined,
    isProvenAgainst: () => true,
  };
  const transport = renewingTransport(kubeconfig, ({ context }) => async () => {
    events.push(context);
    return { status: context === 'old' ? 401 : 200, headers: {}, body: refusal() };
  });
  await expect(transport({ method: 'GET', path: '/', headers: {} }, signal)).resolves.toMatchObject({ status: 200 });
  expect(events).toEqual(['old', 'ended', 'newer']);
});
