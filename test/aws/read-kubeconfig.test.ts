import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { kubeconfigReader } from '../../lib/aws/read-kubeconfig.ts';
import type { StoredKubeconfig } from '../../lib/aws/stored-kubeconfig.ts';
import { targetGroupReader } from '../../lib/aws/target-group.ts';
import { errorSentence } from '../../lib/telemetry/telemetry.ts';
import { type AwsAnswer, type AwsCall, assumedRole, awsError, fakeAws, stsError } from '../support/fake-aws.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const role = 'arn:aws:iam::123456789012:role/reader';
const secret: StoredKubeconfig = { secretsManager: 'kbc/demo' };
const parameter: StoredKubeconfig = { ssm: '/kbc/demo' };

/** Returns a reader without retries. */
const aReader = (requestTimeoutMs = 30_000) => kubeconfigReader({ maxAttempts: 1, requestTimeoutMs });
const BAD = 'BadKubeconfig';
const never = new AbortController().signal;

/** Answers a request for a secret or parameter with its name, and a request for a role with a key of that role. */
function echo({ action, body }: AwsCall): AwsAnswer {
  if (action === 'AssumeRole') return assumedRole(`KEY-OF-${String(body['RoleArn']).split('/')[1]}`);
  if (action === 'AmazonSSM.GetParameter') return { body: { Parameter: { Value: `kubeconfig in ${body['Name']}` } } };
  return { body: { SecretString: `kubeconfig in ${body['SecretId']}` } };
}

test.each([
  ['secret', secret, 'secretsmanager.GetSecretValue', { SecretId: 'kbc/demo' }],
  ['decrypted parameter', parameter, 'AmazonSSM.GetParameter', { Name: '/kbc/demo', WithDecryption: true }],
])('a kubeconfig in AWS is read from a %s with the name in the spec', async (_, stored, action, body) => {
  const { calls } = await fakeAws(echo);
  expect(await aReader()(stored, never)).toMatch(/^kubeconfig in \/?kbc\/demo$/);
  expect(calls).toEqual([{ action, body, accessKey: 'OWN' }]);
});

test('a kubeconfig can be in a secret whose value is binary', async () => {
  await fakeAws(() => ({ body: { SecretBinary: Buffer.from('kind: Config').toString('base64') } }));
  expect(await aReader()(secret, never)).toBe('kind: Config');
});

test('for several kubeconfigs in another account, a reader assumes the role only once, with the external ID of the stack', async () => {
  const { calls } = await fakeAws(echo);
  process.env['ASSUME_ROLE_EXTERNAL_ID'] = 'our-stack';
  const read = aReader();
  for (const stored of [secret, secret, parameter]) await read({ ...stored, roleArn: role }, never);
  expect(calls.map(({ action, accessKey }) => [action, accessKey])).toEqual([
    ['AssumeRole', 'OWN'],
    ['secretsmanager.GetSecretValue', 'KEY-OF-reader'],
    ['secretsmanager.GetSecretValue', 'KEY-OF-reader'],
    ['AmazonSSM.GetParameter', 'KEY-OF-reader'],
  ]);
  const assumed = { RoleArn: role, RoleSessionName: 'kube-bootstrap-controller', ExternalId: 'our-stack' };
  expect(calls[0]?.body).toMatchObject(assumed);
});

test('a process without a region assumes a role and reads a secret in the region that the ARN of the secret contains', async () => {
  const { calls } = await fakeAws(echo);
  delete process.env['AWS_REGION'];
  const arn = 'arn:aws:secretsmanager:eu-test-1:123456789012:secret:kbc/demo';
  expect(await aReader()({ secretsManager: arn, roleArn: role }, never)).toBe(`kubeconfig in ${arn}`);
  expect(calls.map(({ action }) => action)).toEqual(['AssumeRole', 'secretsmanager.GetSecretValue']);
});

test('a reader keeps the credentials of the hundred roles that it used last, and assumes any other role again', async () => {
  const { calls } = await fakeAws(echo);
  const read = aReader();
  const roles = Array.from({ length: 101 }, (_, at) => `${role}-${at}`);
  const assumedFor = async (...arns: readonly string[]) => {
    const before = calls.filter(({ action }) => action === 'AssumeRole').length;
    for (const roleArn of arns) await read({ ...parameter, roleArn }, never);
    return calls.filter(({ action }) => action === 'AssumeRole').length - before;
  };
  expect(await assumedFor(...roles)).toBe(101);
  expect(await assumedFor(...roles.slice(-1), ...roles.slice(1, 2))).toBe(0);
  expect(await assumedFor(...roles.slice(0, 1))).toBe(1);
});

test('the AWS profile of the user is used to read secrets and target groups and to assume roles', async () => {
  const { calls } = await fakeAws((call) =>
    call.action === 'AmazonSSM.GetParameter'
      ? awsError('ParameterNotFound')
      : call.action === 'DescribeTargetHealth'
        ? stsError('TargetGroupNotFound', 400)
        : echo(call),
  );
  const file = join(temporaryFolder(), 'credentials');
  writeFileSync(file, '[mine]\naws_access_key_id = MINE\naws_secret_access_key = my-secret-key\n');
  process.env['AWS_SHARED_CREDENTIALS_FILE'] = file;
  // The SDK prints a warning if both a profile and keys are set.
  for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) delete process.env[name];
  const read = kubeconfigReader({ maxAttempts: 1, profile: 'mine', region: 'eu-test-2' });
  await read(secret, never);
  await expect(read({ ...parameter, roleArn: role }, never)).rejects.toThrow('not found in region eu-test-2');
  const arn = 'arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/prod/0123456789abcdef';
  await expect(targetGroupReader({ profile: 'mine' })(arn, never)).rejects.toThrow('no such target group');
  expect(calls.map(({ action, accessKey }) => [action, accessKey])).toEqual([
    ['secretsmanager.GetSecretValue', 'MINE'],
    ['AssumeRole', 'MINE'],
    ['AmazonSSM.GetParameter', 'KEY-OF-reader'],
    ['DescribeTargetHealth', 'MINE'],
  ]);
});

const denied = 'AccessDeniedException';
const ofRole = { ...parameter, roleArn: role };

test.each<[StoredKubeconfig, AwsAnswer, string, RegExp]>([
  [secret, awsError('ResourceNotFoundException'), BAD, /kbc\/demo was not found in region eu-test-1.*secretsM/],
  [parameter, awsError('ParameterNotFound'), BAD, /parameter \/kbc\/demo was not found.*correct kubeconfig\.ssm/],
  [secret, awsError(denied), BAD, /GetSecretValue on secret kbc\/demo .* was denied.*parameter secretsPrefix/],
  [secret, awsError(denied, 'Access to KMS is not allowed'), BAD, /encryption key.*parameter kmsKeyArn.*kms:Decrypt/],
  [ofRole, awsError(denied), BAD, /GetParameter on parameter \/kbc\/demo .* denied. Allow it to the role arn/],
  [secret, awsError('InvalidRequestException', 'it was marked for deletion.'), BAD, /marked for deletion/],
  [secret, { body: {} }, BAD, /is empty/],
  [secret, { body: { SecretString: ' \n' } }, BAD, /is empty/],
  [secret, awsError('ExpiredTokenException', 'signature was abc123'), BAD, /not be authenticated \(Expired/],
  [secret, awsError('ThrottlingException'), 'Throttled', /next pass/],
  [secret, awsError('InternalServiceError', 'oops', 500), 'Unavailable', /failed \(InternalServiceError\)/],
  [secret, { hang: true }, 'Unavailable', /no answer \(.+\).*com\.amazonaws\.eu-test-1\.secretsmanager.*NAT gateway/],
  [parameter, { hang: true }, 'Unavailable', /no answer \(.+\).*com\.amazonaws\.eu-test-1\.ssm /],
])('the read of %j with the answer %j fails with %s and a resolution', async (stored, answer, code, message) => {
  await fakeAws((call) => (call.action === 'AssumeRole' ? assumedRole('ROLE') : answer));
  const read = aReader('hang' in answer ? 50 : undefined)(stored, never);
  await expect(read).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
  await expect(read).rejects.not.toMatchObject({ message: expect.stringContaining('abc123') });
});

test('if AWS denies sts:AssumeRole, the error contains the resolution', async () => {
  await fakeAws(() => stsError('AccessDenied'));
  await expect(aReader()({ ...secret, roleArn: role }, never)).rejects.toMatchObject({
    code: 'BadKubeconfig',
    message: expect.stringMatching(
      /sts:AssumeRole on arn:aws:iam::123456789012:role\/reader.*parameter assumableRoleArns/,
    ),
  });
});

test('if the pass is aborted during the read of a kubeconfig, the error has the code DeadlineExceeded', async () => {
  await fakeAws(() => ({ hang: true }));
  const pass = new AbortController();
  const read = kubeconfigReader()(secret, pass.signal);
  pass.abort();
  await expect(read).rejects.toMatchObject({ code: 'DeadlineExceeded' });
});

test('the error about a missing region mentions the problem once, in whole sentences', async () => {
  await fakeAws(echo);
  delete process.env['AWS_REGION'];
  const error: unknown = await aReader()(secret, never).catch((reason: unknown) => reason);
  expect(errorSentence(error)).toBe(
    'BadKubeconfig: The kubeconfig in secret kbc/demo cannot be read: no AWS region is set. Set AWS_REGION, or name it by its ARN.',
  );
});
