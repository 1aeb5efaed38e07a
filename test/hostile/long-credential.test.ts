import { expect, test } from '@jest/globals';
import { tokenRequester } from '../../lib/aws/read-kubeconfig.ts';
import { LONGEST_TOKEN } from '../../lib/cluster/bounds.ts';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { issuedToken, startFakeAws } from '../support/fake-aws.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';

const LONG = 'x'.repeat(LONGEST_TOKEN + 1);

test('a kubeconfig with a token of more than 4 KB is refused without quoting it', async () => {
  const text = kubeconfigTo('https://10.0.0.1:6443', { user: { token: LONG } });
  const error: unknown = await parseKubeconfig(text, 'of a tenant').catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'BadKubeconfig', message: expect.stringContaining('more than 4096 characters') });
  expect(String(error)).not.toContain('xxxx');
});

test('a token of more than 4 KB from AWS STS is not sent', async () => {
  const aws = await startFakeAws(() => issuedToken(LONG));
  const requested = tokenRequester({})('https://10.0.0.1:6443');
  await expect(requested).rejects.toMatchObject({ code: 'BadKubeconfig', message: expect.stringContaining('4097') });
  await aws.stop();
});
