import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type ApiServers, startApiServers } from '../../local/stand-in/api-servers.ts';
import { requestLocal } from '../support/request-local.ts';
import { IDENTITY, readyStandIn } from '../support/stand-in.ts';

let servers: ApiServers;

beforeEach(async () => {
  servers = await startApiServers(await readyStandIn(), IDENTITY, ['192.0.2.1', '192.0.2.2']);
});

afterEach(() => servers.close());

const statusOf = async (address: string, path = '/readyz') =>
  requestLocal(servers.urlOf(address) + path).then(
    ({ status }) => status,
    () => 'silence',
  );

test('the API servers of one control plane have a port each, and one store', async () => {
  expect(servers.urlOf('192.0.2.1')).not.toBe(servers.urlOf('192.0.2.2'));
  const namespaces = `/api/v1/namespaces`;
  const body = JSON.stringify({ metadata: { name: 'shop' } });
  await requestLocal(servers.urlOf('192.0.2.1') + namespaces, { method: 'POST', body });
  expect(await statusOf('192.0.2.2', `${namespaces}/shop`)).toBe(200);
});

test('the API servers of one control plane stop and return one by one, each at its port', async () => {
  const url = servers.urlOf('192.0.2.2');
  await servers.stop('192.0.2.2');
  expect([await statusOf('192.0.2.1'), await statusOf('192.0.2.2')]).toEqual([200, 'silence']);
  await servers.stop('192.0.2.2');
  await servers.start('192.0.2.2');
  await servers.start('192.0.2.2');
  expect(await statusOf('192.0.2.2')).toBe(200);
  expect(servers.urlOf('192.0.2.2')).toBe(url);
});

test('the API servers of one control plane are identified by their addresses', () => {
  expect(() => servers.urlOf('192.0.2.9')).toThrow('192.0.2.9 is not an API server of this control plane');
});
