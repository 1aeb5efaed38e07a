import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { startFaultServer } from '../support/api-fault-server.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';
import { accessTo, proberWith, transportWith } from '../support/transport-to.ts';

const LOCAL = [
  ...['127.0.0.1', '127.9.9.9', '2130706433', '0x7f.1', '0.0.0.0', '169.254.169.254', '169.254.170.2', '[::1]', '[::]'],
  ...['[fe80::1]', '[fd00:ec2::254]', '[::ffff:169.254.169.254]', '[::ffff:7f00:1]', '[::127.0.0.1]'],
  ...['[64:ff9b::169.254.169.254]', '[2002:a9fe:a9fe::1]', '[::ffff:0:169.254.169.254]'],
];
/** Hosts that the parser of URLs would write otherwise. A kubeconfig may not have them. */
const REPAIRED = ['2130706433', '0x7f.1'];
let server: Awaited<ReturnType<typeof startFaultServer>>;

beforeEach(async () => {
  server = await startFaultServer(() => ({ status: 200, body: 'the function itself' }));
});

afterEach(() => server.stop());

const inFunction = (url: string) => parseKubeconfig(kubeconfigTo(url), 'of a tenant', { refuseLocal: true });
const probe = async (url: string) => {
  const access = await inFunction('https://10.0.0.1:6443');
  return proberWith(access)({ url, authenticate: false });
};

describe('a function does not connect to a loopback or metadata address', () => {
  test.each(LOCAL)('a function does not connect to %s as the host of a kubeconfig or a probe URL', async (host) => {
    const message = expect.stringContaining('to which functions do not connect');
    const refused = REPAIRED.includes(host) ? expect.stringContaining('is not the URL of an API server') : message;
    const error = { code: 'BadKubeconfig', message: refused };
    await expect(inFunction(`http://${host}:9001`)).rejects.toMatchObject(error);
    const url = `http://${host}:9001/2018-06-01/runtime/invocation/next`;
    await expect(probe(url)).resolves.toMatchObject({ kind: 'silence', message });
  });

  test('a function does not connect to a host name that resolves to a loopback or metadata address', async () => {
    const url = server.url.replace('127.0.0.1', 'localhost');
    const request = { method: 'GET', path: '/', headers: {} } as const;
    const answer = transportWith(await inFunction(url))(request, new AbortController().signal);
    await expect(answer).rejects.toMatchObject({ code: 'BadKubeconfig' });
    await expect(probe(url)).resolves.toMatchObject({ kind: 'silence', message: expect.stringContaining('localhost') });
    expect(server.requests).toEqual([]);
  });

  const REMOTE = ['10.0.0.1', '172.31.255.1', '[fd00::1]', '[2001:db8::1]', '[::ffff:10.0.0.1]', 'api.example.com'];
  test.each(REMOTE)('a function accepts a kubeconfig with the server %s', async (host) => {
    await expect(inFunction(`https://${host}:6443`)).resolves.toMatchObject({ context: expect.any(String) });
  });
});

test('a kubeconfig that a user passes to kbctl can refer to an API server on the same machine', async () => {
  const url = server.url.replace('127.0.0.1', 'localhost');
  const reply = await proberWith(await accessTo(server.url))({ url, authenticate: false });
  expect(reply).toMatchObject({ kind: 'status', status: 200 });
});
