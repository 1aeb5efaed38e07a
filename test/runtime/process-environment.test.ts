import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { environmentFrom } from '../../lib/runtime/cluster-environment.ts';
import { VERSION } from '../../lib/runtime/version.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';
import { readInRepository } from '../support/repository.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const options = { loop: 'system-namespaces', signal: new AbortController().signal, warn: () => {} } as const;
const complete = { TABLE_NAME: 'clusters', REPORTING_INSTANCE: 'kbc-test', STACK: 'kbc-test' };

test.each(['TABLE_NAME', 'REPORTING_INSTANCE', 'STACK'])('environmentFrom refuses variables without %s', (name) => {
  const build = () => environmentFrom({ ...complete, [name]: '' });
  expect(build).toThrow(expect.objectContaining({ code: 'BadEnvironment' }));
  expect(build).toThrow(`The environment variable ${name} is not set`);
});

test('a deployed function reads kubeconfig files from the folder of its code', async () => {
  const { connect } = environmentFrom({ ...complete, LAMBDA_TASK_ROOT: '/var/task' });
  await expect(connect(aClusterSpec({ kubeconfig: { file: 'none.yml' } }), options)).rejects.toMatchObject({
    code: 'BadKubeconfig',
    message: expect.stringContaining('/var/task/none.yml'),
  });
});

test('a process refuses a kubeconfig with a server on its own machine if it runs in Lambda, and accepts the kubeconfig elsewhere', async () => {
  const folder = temporaryFolder();
  await writeFile(path.join(folder, 'kubeconfig'), kubeconfigTo('http://127.0.0.1:9001'));
  const open = (variables: object) =>
    environmentFrom({ ...complete, LAMBDA_TASK_ROOT: folder, ...variables }).connect(
      aClusterSpec({ kubeconfig: { file: 'kubeconfig' } }),
      options,
    );
  await expect(open({ AWS_LAMBDA_RUNTIME_API: '127.0.0.1:9001' })).rejects.toMatchObject({ code: 'BadKubeconfig' });
  await expect(open({})).resolves.toMatchObject({ kubernetes: expect.anything() });
});

test.each([
  { url: undefined, queues: false },
  { url: '', queues: false },
  { url: 'https://sqs.eu-test-1.amazonaws.com/1/ticks', queues: true },
])('a function has a tick queue only if TICK_QUEUE_URL has a value: $url', ({ url, queues }) => {
  expect(environmentFrom({ ...complete, TICK_QUEUE_URL: url }).tickQueue !== undefined).toBe(queues);
});

test('VERSION is the version in package.json', () => {
  expect(JSON.parse(readInRepository('package.json'))).toMatchObject({ version: VERSION });
});
