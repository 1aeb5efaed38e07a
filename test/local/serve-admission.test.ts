import { readFile, stat } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { HttpClient } from '../../lib/kubernetes/http-client.ts';
import { serveAdmission, writeAdmissionFiles } from '../../local/serve-admission.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { aDispatchWorld } from '../support/dispatch-world.ts';
import { freePort } from '../support/server-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const authority = makeAuthority('the test');
const certified = authority.issue(['127.0.0.1']);
const { environment } = aDispatchWorld();

const folder = temporaryFolder();
test('a request without the token is refused before the handler is called, and one with it gets its answer', async () => {
  const port = await freePort('127.0.0.1');
  const events: object[] = [];
  const close = await serveAdmission(
    async (event) => {
      events.push(event as object);
      return { statusCode: 200, headers: {}, body: 'reviewed' };
    },
    environment,
    { certified, port, token: 'right' },
  );
  const client = new HttpClient(`https://127.0.0.1:${port}`, { tls: { ca: authority.ca, rejectUnauthorized: true } });
  const send = async (token: string) => {
    const headers = { 'content-type': 'application/json', connection: 'keep-alive', authorization: `Bearer ${token}` };
    const signal = new AbortController().signal;
    const reply = await client.request({ method: 'POST', path: '/demo', headers, body: '{}' }, signal);
    for await (const _ of reply.body);
    return reply;
  };
  expect(await send('wrong')).toMatchObject({ status: 401 });
  expect(events).toEqual([]);
  // Longer than an API server keeps an idle connection: it must not send a review on one that is just being closed.
  expect(await send('right')).toMatchObject({ status: 200, headers: { 'keep-alive': 'timeout=100' } });
  expect(events).toMatchObject([{ rawPath: '/demo', body: '{}' }]);
  client.destroy();
  await close();
});

test('a port that another process uses is an error with its resolution', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  const { port } = other.address() as AddressInfo;
  const handler = async () => ({ statusCode: 200, headers: {}, body: '' });
  await expect(serveAdmission(handler, environment, { certified, port, token: 'right' })).rejects.toThrow(
    `Port ${port} cannot be used (EADDRINUSE): name a free one with --admission.`,
  );
  other.close();
});

test('the files contain the address of this machine and refer to one another, and only their user can read the token', async () => {
  const place = { cluster: 'prod-eu-1', port: 9443, token: 'right', ca: authority.ca };
  const files = await writeAdmissionFiles(path.join(folder, 'admission'), place);
  const token = path.join(folder, 'admission', 'token');
  expect((await stat(token)).mode & 0o777).toBe(0o600);
  expect(await readFile(token, 'utf8')).toBe('right\n');
  expect(await readFile(path.join(folder, 'admission', 'kubeconfig.yaml'), 'utf8')).toContain(token);
  expect(await readFile(files.config, 'utf8')).toContain(path.join(folder, 'admission', 'kubeconfig.yaml'));
  expect(await readFile(files.webhook, 'utf8')).toContain('url: https://127.0.0.1:9443/prod-eu-1');
});
