import { afterEach, describe, expect, test } from '@jest/globals';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { BytesInFlight, readWhole } from '../../lib/kubernetes/reply-bounds.ts';
import { ApiServerConnections, type OpenReply } from '../../lib/kubernetes/transport.ts';
import { tellOnce, warningsOf } from '../../lib/kubernetes/warnings.ts';
import { startFaultServer } from '../support/api-fault-server.ts';
import { eventually } from '../support/eventually.ts';
import { startSilentServer } from '../support/silent-server.ts';

const signal = new AbortController().signal;
let stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.reverse()) {
    await stop();
  }
  stops = [];
});

function kubeconfigFor(server: string) {
  return parseKubeconfig(
    JSON.stringify({
      'current-context': 'it',
      contexts: [{ name: 'it', context: { cluster: 'it', user: 'it' } }],
      clusters: [{ name: 'it', cluster: { server } }],
      users: [{ name: 'it', user: {} }],
    }),
    'of the test',
  );
}

async function serverAndConnections() {
  const server = await startFaultServer(() => ({ status: 202, headers: { 'X-Odd': 'yes' }, body: 'done' }));
  const connections = new ApiServerConnections();
  stops = [server.stop, () => connections.close()];
  const kubeconfig = (prefix: string) => kubeconfigFor(server.url + prefix);
  return { server, connections, kubeconfig };
}

async function text(body: OpenReply['body']): Promise<string> {
  return new TextDecoder().decode(await readWhole(body, 'the test', new BytesInFlight()));
}

describe('a transport', () => {
  test('sends the request as it is and gives the whole reply', async () => {
    const { server, connections, kubeconfig } = await serverAndConnections();
    const transport = connections.transport(await kubeconfig(''));
    const headers = { 'content-type': 'application/json', accept: 'a/b' };
    const reply = await transport({ method: 'PUT', path: '/api/v1/x?y=z', headers, body: '{"a":"é"}' }, signal);
    expect(reply).toMatchObject({ status: 202, headers: { 'x-odd': 'yes' } });
    expect(await text(reply.body)).toBe('done');
    expect(server.requests[0]).toMatchObject({ method: 'PUT', path: '/api/v1/x?y=z', headers, body: '{"a":"é"}' });
  });

  test('puts the path of the server URL before that of the request', async () => {
    const { server, connections, kubeconfig } = await serverAndConnections();
    const transport = connections.transport(await kubeconfig('/k8s/clusters/c-1/'));
    await transport({ method: 'GET', path: '/api', headers: {} }, signal);
    expect(server.requests[0]?.path).toBe('/k8s/clusters/c-1/api');
  });

  test('shares its few connections with the passes that come after', async () => {
    const { server, connections, kubeconfig } = await serverAndConnections();
    for (let pass = 0; pass < 20; pass += 1) {
      const transport = connections.transport(await kubeconfig(''));
      await transport({ method: 'GET', path: '/api', headers: {} }, signal);
    }
    expect(server.connections()).toBeLessThanOrEqual(4);
  });

  test('ends with its signal', async () => {
    const { connections, kubeconfig } = await serverAndConnections();
    const transport = connections.transport(await kubeconfig(''));
    await expect(transport({ method: 'GET', path: '/', headers: {} }, AbortSignal.abort())).rejects.toBeDefined();
  });

  test('ends with its signal also while there is no connection yet', async () => {
    const silent = await startSilentServer();
    const connections = new ApiServerConnections();
    stops = [() => connections.close(), silent.close];
    const transport = connections.transport(await kubeconfigFor(`https://${silent.authority}`));
    const deadline = new AbortController();
    const reply = transport({ method: 'GET', path: '/', headers: {} }, deadline.signal);
    await eventually(() => expect(silent.connections()).toBe(1));
    deadline.abort(new Error('the pass has ended'));
    await expect(reply).rejects.toThrow('the pass has ended');
  });
});

describe('warnings of an API server', () => {
  const reply = (warning: string) => ({ status: 200, headers: { warning }, body: new Uint8Array() });

  test.each([
    ['299 - "v1 ComponentStatus is deprecated"', ['v1 ComponentStatus is deprecated']],
    ['299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"', []],
    ['299 - "one", 299 agent "two, \\"quoted\\""', ['one', 'two, "quoted"']],
    ['199 proxy "elsewhere" "Sun, 06 Nov 1994", 299 - "here"', ['here']],
    ['nonsense', []],
    [`299 - "${'x'.repeat(10_000)}"`, []],
    [`299 - "${'x'.repeat(500)}"`, [`${'x'.repeat(300)}…`]],
    ['', []],
  ])('are read from %s', (header, texts) => {
    expect(warningsOf(reply(header))).toEqual(texts);
  });

  test('of one API server become ten log lines at most', () => {
    const told: string[] = [];
    const tell = tellOnce((text) => told.push(text));
    for (let index = 0; index < 1_000; index += 1) tell(`words of a tenant ${index}`);
    expect(told).toHaveLength(10);
  });

  test('are told once each', () => {
    const told: string[] = [];
    const tell = tellOnce((text) => told.push(text));
    for (const text of ['a', 'b', 'a', 'b', 'a']) {
      tell(text);
    }
    expect(told).toEqual(['a', 'b']);
  });
});
