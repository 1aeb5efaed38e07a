import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { httpsProber } from '../../lib/kubernetes/https-prober.ts';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { ApiServerConnections } from '../../lib/kubernetes/transport.ts';
import { startFaultServer } from '../support/api-fault-server.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';

const LOCAL_HOSTS = [
  ...['127.0.0.1', '127.9.9.9', '2130706433', '0x7f.1', '0.0.0.0', '169.254.169.254', '169.254.170.2', '[::1]', '[::]'],
  ...['[fe80::1]', '[fd00:ec2::254]', '[::ffff:169.254.169.254]', '[::ffff:7f00:1]', '[::127.0.0.1]'],
  ...['[64:ff9b::169.254.169.254]', '[2002:a9fe:a9fe::1]', '[::ffff:0:169.254.169.254]'],
];
/** Hosts that the parser of URLs would write otherwise. A kubeconfig may not have them. */
const REPAIRED = ['2130706433', '0x7f.1'];
const signal = new AbortController().signal;
let server: Awaited<ReturnType<typeof startFaultServer>>;
const connections = new ApiServerConnections();

beforeAll(async () => {
  server = await startFaultServer(() => ({ status: 200, body: 'the function itself' }));
});

afterAll(async () => {
  await connections.close();
  await server.stop();
});

const inFunction = (url: string) => parseKubeconfig(kubeconfigTo(url), 'of a tenant', { refuseLocal: true });
const probe = async (url: string) => {
  const access = await inFunction('https://10.0.0.1:6443');
  return httpsProber({ access, deadline: signal, userAgent: 'test' })({ url, authenticate: false });
};

describe('a function does not connect to a loopback or metadata address', () => {
  test.each(LOCAL_HOSTS)(
    'a function does not connect to %s, as the server of a kubeconfig or as the URL of a probe',
    async (host) => {
      const message = expect.stringContaining('to which functions do not connect');
      const refused = REPAIRED.includes(host) ? expect.stringContaining('is not the URL of an API server') : message;
      await expect(inFunction(`http://${host}:9001`)).rejects.toMatchObject({
        code: 'BadKubeconfig',
        message: refused,
      });
      const url = `http://${host}:9001/2018-06-01/runtime/invocation/next`;
      await expect(probe(url)).resolves.toMatchObject({ kind: 'silence', message });
    },
  );

  test('a function does not connect to a host name that resolves to a loopback or metadata address', async () => {
    const url = server.url.replace('127.0.0.1', 'localhost');
    const request = { method: 'GET', path: '/', headers: {} } as const;
    await expect(connections.transport(await inFunction(url))(request, signal)).rejects.toMatchObject({
      code: 'BadKubeconfig',
    });
    await expect(probe(url)).resolves.toMatchObject({ kind: 'silence', message: expect.stringContaining('localhost') });
    expect(server.requests).toEqual([]);
  });

  test.each(['10.0.0.1', '172.31.255.1', '[fd00::1]', '[2001:db8::1]', '[::ffff:10.0.0.1]', 'api.example.com'])(
    'a function accepts a kubeconfig with the server %s',
    async (host) => {
      await expect(inFunction(`https://${host}:6443`)).resolves.toMatchObject({ context: expect.any(String) });
    },
  );
});

test('a kubeconfig that a user passes to kbctl can refer to an API server on the same machine', async () => {
  const access = await parseKubeconfig(kubeconfigTo(server.url), 'of a person');
  const reply = await httpsProber({ access, deadline: signal, userAgent: 'test' })({
    url: server.url.replace('127.0.0.1', 'localhost'),
    authenticate: false,
  });
  expect(reply).toMatchObject({ kind: 'status', status: 200 });
});
