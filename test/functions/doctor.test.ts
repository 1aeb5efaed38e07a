import { expect, test } from '@jest/globals';
import { handler } from '../../functions/doctor.ts';
import { tableEnvironmentFrom } from '../../lib/runtime/process-environment.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { LOCAL_TABLE } from '../../local/local-environment.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { assumedRole, awsError, fakeAws } from '../support/fake-aws.ts';
import { runningTableServer } from '../support/test-dynamo-client.ts';

const table = runningTableServer();

test('each invocation of the doctor assumes the role of a kubeconfig again', async () => {
  const { calls } = await fakeAws(({ action }) => (action === 'AssumeRole' ? assumedRole('ROLE') : awsError('Denied')));
  const ofTable = { TABLE_NAME: LOCAL_TABLE, AWS_ENDPOINT_URL_DYNAMODB: table.endpoint, AWS_ACCESS_KEY_ID: table.key };
  Object.assign(process.env, ofTable, { STACK: 'kbc', REPORTING_INSTANCE: 'kbc', POWERTOOLS_LOG_LEVEL: 'SILENT' });
  const kubeconfig = { ssm: '/kbc/demo', roleArn: 'arn:aws:iam::123456789012:role/reader' };
  await registerCluster(
    tableEnvironmentFrom(process.env).table(AbortSignal.timeout(30_000)),
    aClusterSpec({ kubeconfig }),
  );
  for (const times of [1, 2]) {
    await handler({}, { getRemainingTimeInMillis: () => 30_000 });
    expect(calls.filter(({ action }) => action === 'AssumeRole')).toHaveLength(times);
  }
});
