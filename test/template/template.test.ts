import { readdirSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { logicalId, pascalCase, queueOf } from '../../deploy/cloudformation.ts';
import { nameReplacedResources, releaseTemplate } from '../../deploy/compiled-template.ts';
import { listPausesMs } from '../../lib/dispatch/cluster-list.ts';
import { CLOSING_MS, LISTING_MS, PASS_BUDGET_MS } from '../../lib/runtime/deadline.ts';
import { LOOPS, SCHEDULE_SECONDS } from '../../lib/spec/cluster-spec.ts';
import { isGranted, type Statement } from '../support/emulator-policy.ts';
import { found } from '../support/found.ts';
import { readZip, unreadableIn } from '../support/read-zip.ts';
import { type ResolvedResource, type ResolvedTemplate, resolveTemplate } from '../support/resolve-template.ts';
import { running } from '../support/running.ts';
import { packageService } from './package-service.ts';

const STACK = 'kube-bootstrap-controller-dev';
const HANDLERS = readdirSync(path.join(import.meta.dirname, '..', '..', 'functions')).map((file) =>
  path.basename(file, '.ts'),
);
const NAMES = HANDLERS.filter((name) => name !== 'admission');

const EVERYTHING = {
  TableName: 'my-table',
  VpcSubnetIds: 'subnet-1,subnet-2',
  VpcSecurityGroupIds: 'sg-1',
  VpcIpv6: 'true',
  KmsKeyArn: 'arn:aws:kms:eu-west-1:123456789012:key/k',
  LogsKeyArn: 'arn:aws:kms:eu-west-1:123456789012:key/logs',
  AssumableRoleArns: 'arn:aws:iam::210987654321:role/a,arn:aws:iam::210987654321:role/b',
  AssumableOrgRole: 'platform/kubeconfigs-*',
  AssumableOrgPaths: 'o-a1b2c3d4e5/r-ab12/*,o-a1b2c3d4e5/r-cd34/*',
  WebIdentityServers: 'https://203.0.113.10:6443,https://*.clusters.example.com:6443',
  PermissionsBoundaryArn: 'arn:aws:iam::123456789012:policy/boundary',
  RolePath: '/platform/',
  AlarmTopicArn: 'arn:aws:sns:eu-west-1:123456789012:on-call',
  LogRetentionDays: '7',
  LogLevel: 'DEBUG',
  LoopMemory: '1024',
  SecretsPrefix: 'clusters/',
  SecretsRegion: 'eu-north-1',
  TickConcurrency: '50',
  ClustersPerTick: '1',
};
const WITH_ADMISSION = {
  Admission: 'on',
  AdmissionOnFailure: 'allow',
  AdmissionDeadlineSeconds: '5',
  AdmissionTokenStore: 'ssm',
  AdmissionConcurrency: '20',
  SecretsPrefix: 'clusters/',
};

/* All tests use one package, as a release does. CloudFormation applies the parameters to the template. */
const packaged = running(() => packageService({ secretsPrefix: '' }));
const byDefault = running(async () => resolved({ SecretsPrefix: 'kube-bootstrap-controller/dev/' }));
const everything = running(async () => resolved(EVERYTHING));
const nothing = running(async () => resolved({ Alarms: 'false', Dashboard: 'false' }, 'other'));
const withAdmission = running(async () => resolved(WITH_ADMISSION));

function resolved(parameters: Readonly<Record<string, string>>, stack?: string): ResolvedTemplate {
  return resolveTemplate(packaged.template, parameters, stack);
}

function ofType({ Resources }: ResolvedTemplate, type: string): readonly ResolvedResource[] {
  return Object.values(Resources).filter(({ Type }) => Type === type);
}

function propertiesOf({ Resources }: ResolvedTemplate, id: string): ResolvedResource['Properties'] {
  const { Properties } = found(Resources[id]);
  return Properties;
}

function functionOf(template: ResolvedTemplate, name: string): ResolvedResource['Properties'] {
  return propertiesOf(template, `${logicalId(name)}LambdaFunction`);
}

/** Returns the statements of the function's role, with the resources as texts. */
function statementsOf(template: ResolvedTemplate, name: string): readonly ResolvedResource['Properties'][] {
  const { Policies } = propertiesOf(template, `${pascalCase(name)}Role`);
  const statements = Policies.flatMap((policy: ResolvedResource['Properties']) => policy.PolicyDocument.Statement);
  return statements.map((one: ResolvedResource['Properties']) => ({ ...one, Resource: textsOf(one.Resource) }));
}

/** Returns what the function's role allows, as `action on resource`. A minus sign marks denied actions. */
function granted(template: ResolvedTemplate, name: string): readonly string[] {
  return statementsOf(template, name)
    .flatMap(({ Effect, Action, Resource: resources }) =>
      Action.flatMap((action: string) =>
        resources.map((on: string) => `${Effect === 'Deny' ? '-' : ''}${action} on ${on}`),
      ),
    )
    .sort();
}

function mayWrite(template: ResolvedTemplate, name: string, leadingKey: string): boolean {
  const call = { action: 'dynamodb:PutItem', resource: TABLE, leadingKey };
  return isGranted(call, statementsOf(template, name) as Statement[]);
}

function textsOf(resources: readonly (string | { readonly 'Fn::GetAtt': readonly string[] })[]): string[] {
  return resources.map((resource) => (typeof resource === 'string' ? resource : resource['Fn::GetAtt'].join('.')));
}

const TABLE = `arn:aws:dynamodb:REGION:ACCOUNT:table/${STACK}`;
const READS_KUBECONFIGS = [
  'secretsmanager:GetSecretValue on arn:aws:secretsmanager:REGION:ACCOUNT:secret:kube-bootstrap-controller/dev/*',
  'ssm:GetParameter on arn:aws:ssm:REGION:ACCOUNT:parameter/kube-bootstrap-controller/dev/*',
  ...['secretsmanager:GetSecretValue', 'ssm:GetParameter'].flatMap((action) => [
    `-${action} on arn:aws:secretsmanager:REGION:ACCOUNT:secret:kube-bootstrap-controller/dev/admission/*`,
    `-${action} on arn:aws:ssm:REGION:ACCOUNT:parameter/kube-bootstrap-controller/dev/admission/*`,
  ]),
];
const READS_NO_KUBECONFIG = new Set(['allocate']);

const logsOf = (name: string) =>
  ['CreateLogStream', 'PutLogEvents'].map(
    (action) => `logs:${action} on arn:aws:logs:REGION:ACCOUNT:log-group:/aws/lambda/${STACK}-${name}:*`,
  );
const tableActions = (...actions: string[]) => actions.map((action) => `dynamodb:${action} on ${TABLE}`);
const ticksOf = (loop: string) =>
  ['SendMessage', 'ReceiveMessage', 'DeleteMessage', 'GetQueueAttributes'].map(
    (action) => `sqs:${action} on ${queueOf(loop)}.Arn`,
  );

test.each([
  ['without the admission function', byDefault, NAMES],
  ['with the admission function', withAdmission, HANDLERS],
])('in a stack %s, the functions have the names of their files in functions/', (_, template, names) => {
  const deployed = ofType(template, 'AWS::Lambda::Function').map(({ Properties }) => Properties.Handler);
  expect(deployed.sort()).toEqual(names.map((name) => `functions/${name}.handler`).sort());
});

test.each(LOOPS)('the timeout of %s allows a whole pass, and is shorter than the schedule interval', (loop) => {
  const timeoutMs = functionOf(byDefault, loop).Timeout * 1000;
  expect(timeoutMs).toBeGreaterThan(LISTING_MS + listPausesMs(loop) + PASS_BUDGET_MS[loop] + CLOSING_MS);
  expect(timeoutMs).toBeLessThan(Math.max(60, SCHEDULE_SECONDS[loop]) * 1000);
});

test('Lambda does not retry an invocation, because the next tick is the retry', () => {
  const configured = ofType(byDefault, 'AWS::Lambda::EventInvokeConfig');
  expect(configured).toHaveLength(NAMES.length);
  for (const { Properties } of configured) {
    expect(Properties).toMatchObject({ MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: 60 });
  }
});

test('by default, the repair functions have 512 MB of memory, and all other functions have 256 MB, which a parameter can change', () => {
  const memory = (template: ResolvedTemplate) => NAMES.map((name) => [name, functionOf(template, name).MemorySize]);
  expect(new Set(memory(byDefault).map(([name, mb]) => `${name?.endsWith('-repair')} ${mb}`))).toEqual(
    new Set(['true 512', 'false 256']),
  );
  expect(memory(everything)).toContainEqual(['kubernetes-service', '1024']);
});

test.each(NAMES)('the log lines of %s expire', (name) => {
  const group = (template: ResolvedTemplate) => propertiesOf(template, `${logicalId(name)}LogGroup`);
  const LogGroupName = `/aws/lambda/${STACK}-${name}`;
  expect(group(byDefault)).toEqual({ LogGroupName, RetentionInDays: '30' });
  expect(group(everything)).toEqual({ LogGroupName, RetentionInDays: '7', KmsKeyId: EVERYTHING.LogsKeyArn });
});

test.each(LOOPS)('a rule invokes %s at its interval, at most once a minute, and retries for a minute', (loop) => {
  const minutes = Math.max(1, SCHEDULE_SECONDS[loop] / 60);
  const rule = propertiesOf(byDefault, `${logicalId(loop)}EventsRuleSchedule1`);
  expect(rule).toMatchObject({
    ScheduleExpression: minutes === 1 ? 'rate(1 minute)' : `rate(${minutes} minutes)`,
    State: 'ENABLED',
  });
  expect(rule.Targets).toEqual([
    expect.objectContaining({
      Arn: { 'Fn::GetAtt': [`${logicalId(loop)}LambdaFunction`, 'Arn'] },
      RetryPolicy: { MaximumEventAgeInSeconds: 60, MaximumRetryAttempts: 2 },
    }),
  ]);
  expect(ofType(byDefault, 'AWS::Events::Rule')).toHaveLength(LOOPS.length);
});

test.each(LOOPS)(
  '%s receives the messages of its own queue, one message per invocation, and a parameter limits the number of simultaneous invocations',
  (loop) => {
    const sourceIn = (template: ResolvedTemplate) =>
      propertiesOf(template, `${logicalId(loop)}EventSourceMappingSQS${queueOf(loop)}`);
    expect(sourceIn(byDefault)).toMatchObject({
      FunctionName: { 'Fn::GetAtt': [`${logicalId(loop)}LambdaFunction`, 'Arn'] },
      EventSourceArn: { 'Fn::GetAtt': [queueOf(loop), 'Arn'] },
      BatchSize: 1,
      Enabled: true,
      ScalingConfig: { MaximumConcurrency: '10' },
    });
    expect(sourceIn(everything)).toMatchObject({ ScalingConfig: { MaximumConcurrency: '50' } });
  },
);

test('the function doctor checks the queue of each loop', () => {
  const { TICK_QUEUE_URLS } = functionOf(byDefault, 'doctor').Environment.Variables;
  expect(TICK_QUEUE_URLS).toEqual({ 'Fn::Join': [',', LOOPS.map((loop) => ({ Ref: queueOf(loop) }))] });
});

test.each(LOOPS)('a message of %s is hidden until its function timed out, and kept to be received again', (loop) => {
  const Properties = propertiesOf(byDefault, queueOf(loop));
  // The queue has no name, because SQS refuses the name of a queue that was deleted less than a minute ago.
  expect(Properties).toEqual({
    MessageRetentionPeriod: expect.any(Number),
    SqsManagedSseEnabled: true,
    VisibilityTimeout: expect.any(Number),
  });
  expect(Properties.VisibilityTimeout).toBeGreaterThanOrEqual(functionOf(byDefault, loop).Timeout);
  const longestDelay = 60;
  expect(Properties.MessageRetentionPeriod).toBeGreaterThan(longestDelay + Properties.VisibilityTimeout);
});

test('each function has its own role', () => {
  for (const name of NAMES) {
    expect(functionOf(byDefault, name).Role).toEqual({ 'Fn::GetAtt': [`${pascalCase(name)}Role`, 'Arn'] });
  }
  expect(ofType(byDefault, 'AWS::IAM::Role')).toHaveLength(NAMES.length);
});

const table = tableActions('GetItem', 'PutItem', 'Query');
const asksQueues = LOOPS.map((loop) => `sqs:GetQueueAttributes on ${queueOf(loop)}.Arn`);
const publishes = 'events:PutEvents on arn:aws:events:REGION:ACCOUNT:event-bus/default';
const targets = 'elasticloadbalancing:DescribeTargetHealth on *';
test.each([
  ...LOOPS.map((loop) => {
    const own = loop === 'kubernetes-service' ? [targets] : [];
    return [loop, [...table, ...READS_KUBECONFIGS, ...ticksOf(loop), publishes, ...own]] as const;
  }),
  ['deregister', [...table, ...READS_KUBECONFIGS, publishes]] as const,
  // The function connects to no cluster.
  ['allocate', tableActions('BatchGetItem', 'GetItem', 'PutItem')] as const,
  ['doctor', [...table, ...READS_KUBECONFIGS, ...asksQueues, targets]] as const,
])('the role of %s allows only logging and %j', (name, actions) => {
  expect(granted(byDefault, name)).toEqual([...logsOf(name), ...actions].sort());
});

test('only IAM decides which caller may invoke the functions, because no function has a URL or its own policy', () => {
  for (const type of ['AWS::Lambda::Url', 'AWS::ApiGateway::RestApi', 'AWS::ApiGatewayV2::Api']) {
    expect(ofType(byDefault, type)).toEqual([]);
  }
  const invokers = ofType(byDefault, 'AWS::Lambda::Permission').map(({ Properties }) => Properties.Principal);
  expect(invokers).toEqual(LOOPS.map(() => 'events.amazonaws.com'));
});

test.each([
  ['allocate', 'prod', '#clusters'],
  ['deregister', 'prod', '#clusters'],
  ['doctor', '#doctor', 'prod'],
])('the role of %s allows writes to the partition %s and not to %s', (name, allowed, refused) => {
  expect(mayWrite(byDefault, name, allowed)).toBe(true);
  expect(mayWrite(byDefault, name, refused)).toBe(false);
});

test.each(LOOPS)(
  'the role of %s allows writes to the partitions prod and #fleet, and only the role of kubernetes-service allows writes to #clusters',
  (loop) => {
    const written = ['prod', '#fleet', '#clusters'].filter((key) => mayWrite(byDefault, loop, key));
    expect(written).toEqual(['prod', '#fleet', ...(loop === 'kubernetes-service' ? ['#clusters'] : [])]);
  },
);

test('a stack cannot read the kubeconfigs or the table of another stage', () => {
  const policies = JSON.stringify(ofType(nothing, 'AWS::IAM::Role').map(({ Properties }) => Properties.Policies));
  expect(policies).toContain(':secret:other/*');
  expect(policies.replaceAll('{"events:source":"kube-bootstrap-controller"}', '')).not.toContain(
    'kube-bootstrap-controller',
  );
});

test('parameters give every role a path and a permissions boundary', () => {
  for (const { Properties } of ofType(byDefault, 'AWS::IAM::Role')) {
    expect(Properties).toMatchObject({ Path: '/' });
    expect(Properties).not.toHaveProperty('PermissionsBoundary');
  }
  for (const { Properties } of ofType(everything, 'AWS::IAM::Role')) {
    expect(Properties).toMatchObject({ Path: '/platform/', PermissionsBoundary: EVERYTHING.PermissionsBoundaryArn });
  }
});

test.each(NAMES)('parameters put the function %s into a VPC, and allow access to kubeconfigs if needed', (name) => {
  expect(functionOf(byDefault, name)).not.toHaveProperty('VpcConfig');
  expect(functionOf(everything, name).VpcConfig).toEqual({
    SubnetIds: ['subnet-1', 'subnet-2'],
    SecurityGroupIds: ['sg-1'],
    Ipv6AllowedForDualStack: 'true',
  });
  const added = granted(everything, name).filter((line) => /^-?(kms|sts|ec2):/.test(line));
  const interfaces = [
    'AssignIpv6Addresses',
    'AssignPrivateIpAddresses',
    'CreateNetworkInterface',
    'DeleteNetworkInterface',
    'DescribeNetworkInterfaces',
    'DescribeSubnets',
    'UnassignIpv6Addresses',
    'UnassignPrivateIpAddresses',
  ];
  const forKubeconfigs = [
    `kms:Decrypt on ${EVERYTHING.KmsKeyArn}`,
    'sts:AssumeRole on arn:aws:iam::*:role/platform/kubeconfigs-*',
    'sts:AssumeRole on arn:aws:iam::210987654321:role/a',
    'sts:AssumeRole on arn:aws:iam::210987654321:role/b',
    'sts:GetWebIdentityToken on *',
  ];
  expect(added).toEqual([
    ...interfaces.map((action) => `-ec2:${action} on *`),
    ...interfaces.map((action) => `ec2:${action} on *`),
    ...(READS_NO_KUBECONFIG.has(name) ? [] : forKubeconfigs),
  ]);
});

test.each([
  [
    'roles that match a pattern can be assumed only in accounts of the organization',
    'arn:aws:iam::*:role/platform/kubeconfigs-*',
    { 'ForAnyValue:StringLike': { 'aws:ResourceOrgPaths': EVERYTHING.AssumableOrgPaths.split(',') } },
  ],
  [
    'tokens can be requested only for the audiences in a parameter, and for at most five minutes',
    'sts:GetWebIdentityToken',
    {
      'ForAllValues:StringLike': { 'sts:IdentityTokenAudience': EVERYTHING.WebIdentityServers.split(',') },
      Null: { 'sts:IdentityTokenAudience': 'false' },
      NumericLessThanEquals: { 'sts:DurationSeconds': 300 },
    },
  ],
  [
    'Lambda can create network interfaces for functions, but the code of functions cannot',
    'ec2:CreateNetworkInterface',
    undefined,
    { ArnLike: { 'lambda:SourceFunctionArn': expect.anything() } },
  ],
])('%s', (_, of, ...conditions) => {
  const statements = statementsOf(everything, 'deregister').filter(
    ({ Action, Resource: on }) => Action.includes(of) || on.includes(of),
  );
  expect(statements.map(({ Condition }) => Condition)).toEqual(conditions);
});

test('a policy condition with ForAllValues does not allow a request that lacks the condition key', () => {
  const conditions = JSON.stringify(everything).matchAll(/"ForAllValues:\w+":{"([^"]+)":[^}]*}(.{0,80})/g);
  const unguarded = [...conditions].filter(([, key, next]) => !next?.includes(`"Null":{"${key}":"false"}`));
  expect(unguarded.map(([text]) => text)).toEqual([]);
  expect(JSON.stringify(everything)).toContain('"ForAllValues:');
});

test('parameters set the region and the prefix of secrets, and functions can read only these secrets', () => {
  const read = granted(everything, 'deregister').filter((line) => /^(secretsmanager|ssm):/.test(line));
  expect(read).toEqual([
    'secretsmanager:GetSecretValue on arn:aws:secretsmanager:eu-north-1:ACCOUNT:secret:clusters/*',
    'ssm:GetParameter on arn:aws:ssm:eu-north-1:ACCOUNT:parameter/clusters/*',
  ]);
});

test('the table has on-demand capacity, the keys and the TTL attribute that the code uses, and is retained when the stack is deleted', () => {
  const [table] = ofType(byDefault, 'AWS::DynamoDB::Table');
  expect(table).toMatchObject({
    DeletionPolicy: 'Retain',
    UpdateReplacePolicy: 'Retain',
    Properties: {
      TableName: STACK,
      BillingMode: 'PAY_PER_REQUEST',
      DeletionProtectionEnabled: true,
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
      KeySchema: [
        { AttributeName: 'cluster', KeyType: 'HASH' },
        { AttributeName: 'key', KeyType: 'RANGE' },
      ],
      TimeToLiveSpecification: { AttributeName: 'ttl', Enabled: true },
    },
  });
});

test('the stack uses an existing table that a parameter names, and creates none', () => {
  expect(ofType(everything, 'AWS::DynamoDB::Table')).toEqual([]);
  for (const name of NAMES) {
    expect(functionOf(everything, name).Environment.Variables.TABLE_NAME).toBe('my-table');
    const tables = granted(everything, name).filter((line) => line.startsWith('dynamodb:'));
    expect(tables.every((line) => line.endsWith(' on arn:aws:dynamodb:REGION:ACCOUNT:table/my-table'))).toBe(true);
  }
});

test('alarms and the dashboard exist unless parameters turn them off, and alarms notify only the topic that a parameter names', () => {
  const alarmsOf = ({ Resources }: ResolvedTemplate) =>
    Object.values(Resources).filter(({ Type }) => /::(Composite)?Alarm$/.test(Type));
  const actions = (template: ResolvedTemplate) =>
    alarmsOf(template).flatMap(({ Properties }) => (Properties.AlarmActions ? [Properties.AlarmActions] : []));
  expect(actions(byDefault).length).toBeGreaterThan(10);
  for (const list of actions(byDefault)) expect(list).toEqual([]);
  for (const list of actions(everything)) expect(list).toEqual([EVERYTHING.AlarmTopicArn]);
  const [dashboard] = ofType(byDefault, 'AWS::CloudWatch::Dashboard');
  const [{ properties }] = JSON.parse(dashboard?.Properties.DashboardBody).widgets;
  const shown = properties.alarms.map((arn: string) => arn.split(':alarm:')[1]);
  expect(shown.sort()).toEqual(
    alarmsOf(byDefault)
      .map(({ Properties }) => Properties.AlarmName)
      .sort(),
  );
  expect([...alarmsOf(nothing), ...ofType(nothing, 'AWS::CloudWatch::Dashboard')]).toEqual([]);
});

test('the outputs contain the next steps, and omit resources that the stack does not contain', () => {
  const values = Object.fromEntries(Object.entries(withAdmission.Outputs).map(([name, { Value }]) => [name, Value]));
  expect(values).toMatchObject({
    TableName: STACK,
    StatusCommand: `node cli/kbctl.mjs status --table ${STACK}`,
    DashboardUrl: expect.stringContaining(`#dashboards/dashboard/${STACK}`),
    AdmissionUrl: { 'Fn::GetAtt': ['AdmissionUrl', 'FunctionUrl'] },
  });
  expect(nothing.Outputs).not.toHaveProperty('DashboardUrl');
  expect(nothing.Outputs).not.toHaveProperty('AdmissionUrl');
});

const ofAdmission = ({ Resources }: ResolvedTemplate) =>
  Object.fromEntries(Object.entries(Resources).filter(([id]) => id.startsWith('Admission')));
test('the admission function and its resources do not exist by default', () => {
  expect(ofAdmission(byDefault)).toEqual({});
  expect(JSON.stringify(byDefault.Resources)).not.toContain('-admission');
});

test('everyone may call the URL of the admission function, because the URL has both permissions that AWS requires', () => {
  const { AdmissionUrl: url, ...rest } = ofAdmission(withAdmission);
  expect(url?.Properties).toMatchObject({ AuthType: 'NONE', Qualifier: 'live' });
  expect(url?.Properties).not.toHaveProperty('Cors');
  const invoked = { FunctionName: { Ref: 'AdmissionAlias' }, Principal: '*' };
  const permissions = Object.values(rest).filter(({ Type }) => Type === 'AWS::Lambda::Permission');
  expect(permissions.map(({ Properties }) => Properties)).toEqual([
    expect.objectContaining({ ...invoked, Action: 'lambda:InvokeFunctionUrl', FunctionUrlAuthType: 'NONE' }),
    expect.objectContaining({ ...invoked, Action: 'lambda:InvokeFunction', InvokedViaFunctionUrl: true }),
  ]);
  expect(ofType(withAdmission, 'AWS::ApiGateway::RestApi')).toEqual([]);
});

test.each([
  ['regional', '', 'REGIONAL', []],
  ['reachable only from VPC endpoints', 'vpce-1,vpce-2', 'PRIVATE', ['vpce-1', 'vpce-2']],
])('instead of a URL, the admission function can have an API that is %s', (_, AdmissionVpcEndpointIds, type, ids) => {
  const template = resolved({ ...WITH_ADMISSION, AdmissionEndpoint: 'apiGateway', AdmissionVpcEndpointIds });
  expect(ofType(template, 'AWS::Lambda::Url')).toEqual([]);
  const [api] = ofType(template, 'AWS::ApiGateway::RestApi');
  const configuration = { Types: [type], ...(ids.length > 0 && { VpcEndpointIds: ids }) };
  expect(api?.Properties.EndpointConfiguration).toEqual(configuration);
  const conditions = api?.Properties.Policy?.Statement.map((one: { Condition: object }) => one.Condition);
  expect(conditions).toEqual(ids.length > 0 ? [{ StringEquals: { 'aws:SourceVpce': ids } }] : undefined);
  expect(template.Outputs['AdmissionUrl']?.Value).toEqual({
    'Fn::Sub': 'https://${AdmissionApi}.execute-api.REGION.amazonaws.com/admission/',
  });
});

test('parameters configure the admission function', () => {
  const Properties = functionOf(withAdmission, 'admission');
  expect(Properties.ReservedConcurrentExecutions).toBe('20');
  expect(Properties.Environment.Variables).toMatchObject({
    ADMISSION_ON_FAILURE: 'allow',
    ADMISSION_DEADLINE_SECONDS: '5',
    ADMISSION_TOKEN_STORE: 'ssm',
    SECRETS_PREFIX: 'clusters/',
  });
});

test.each<[string, Readonly<Record<string, string>>, string]>([
  [
    'the webhook without reserved concurrency, because a flood of reviews could use the concurrency of the loops',
    { Admission: 'on' },
    'set AdmissionConcurrency, too',
  ],
  ['subnets without security groups', { VpcSubnetIds: 'subnet-1' }, 'set both, or neither'],
  ['security groups without subnets', { VpcSecurityGroupIds: 'sg-1' }, 'set both, or neither'],
  ['a role of any account of the organization', { AssumableOrgRole: 'kbc' }, 'set AssumableOrgPaths, too'],
])('CloudFormation refuses %s', (_what, parameters, fix) => {
  expect(resolved(parameters).broken).toEqual([expect.stringContaining(fix)]);
  expect([byDefault.broken, everything.broken, withAdmission.broken]).toEqual([[], [], []]);
});

test('the role of the admission function allows only logging, reads and writes of the table, and reads of cluster tokens', () => {
  expect(granted(withAdmission, 'admission')).toEqual(
    [
      ...logsOf('admission'),
      ...tableActions('GetItem', 'PutItem', 'Query'),
      'secretsmanager:GetSecretValue on arn:aws:secretsmanager:REGION:ACCOUNT:secret:clusters/admission/*',
      'ssm:GetParameter on arn:aws:ssm:REGION:ACCOUNT:parameter/clusters/admission/*',
    ].sort(),
  );
  expect(mayWrite(withAdmission, 'admission', 'prod')).toBe(true);
  expect(mayWrite(withAdmission, 'admission', '#clusters')).toBe(false);
});

test('every function may use the KMS key of the table, but only through DynamoDB', () => {
  const template = resolved({ TableKeyArn: EVERYTHING.KmsKeyArn, Admission: 'on' });
  const [table] = ofType(template, 'AWS::DynamoDB::Table');
  expect(table?.Properties.SSESpecification).toMatchObject({ KMSMasterKeyId: EVERYTHING.KmsKeyArn });
  for (const name of HANDLERS) {
    expect(statementsOf(template, name)).toContainEqual(
      expect.objectContaining({
        Action: expect.arrayContaining(['kms:Decrypt']),
        Condition: { StringEquals: { 'kms:ViaService': 'dynamodb.REGION.amazonaws.com' } },
      }),
    );
  }
});

describe.each(['allocate', 'admission'])('the version of the function %s', (name) => {
  const id = logicalId(name);
  const compiled = () => packaged.template as ResolvedTemplate;
  /** Returns the names of the parameters in a value. */
  const usedIn = (value: unknown) => {
    const names = [...JSON.stringify(value).matchAll(/"Ref":"(\w+)"|\$\{(\w+)\}/g)].map(
      ([, one, other]) => one ?? other,
    );
    return new Set(names.filter((one = '') => one in compiled().Parameters));
  };
  const descriptionWith = (parameters: Readonly<Record<string, string>>) =>
    String(resolved({ Admission: 'on', ...parameters }).Resources[`${id}Version`]?.Properties.Description);

  test('the version depends on all parameters that the function uses', () => {
    const { ReservedConcurrentExecutions: _, ...properties } = functionOf(compiled(), name);
    // Only loops use these two parameters. RolePath is part of the role that the function refers to.
    const used = [...usedIn(properties), 'RolePath'].filter((one) => one !== 'ClustersPerTick' && one !== 'ExternalId');
    expect([...usedIn(propertiesOf(compiled(), `${id}Version`))].toSorted()).toEqual(used.toSorted());
  });

  test('parameters without an effect on the function do not change its version', () => {
    const unused = { VpcIpv6: 'true', ExternalId: 'x1', ClustersPerTick: '1', TableName: STACK };
    expect(descriptionWith(unused)).toBe(descriptionWith({}));
  });

  test('the description of the version has at most 256 characters in a VPC with six subnets and three security groups', () => {
    const ids = (kind: string, count: number) => Array(count).fill(`${kind}-0123456789abcdef0`).join();
    const vpc = { VpcIpv6: 'true', VpcSubnetIds: ids('subnet', 6), VpcSecurityGroupIds: ids('sg', 3) };
    const description = descriptionWith({ ...vpc, SecretsPrefix: 'kube-bootstrap-controller/prod/' });
    expect(description.length).toBeLessThanOrEqual(256);
    expect(description).toContain(' 123456789abcdef0,123456789abcdef0');
  });
});

const compiled = () => packaged.template as Parameters<typeof releaseTemplate>[0];
const released = () => releaseTemplate(compiled(), '1.2.3', hashOf);
const hashOf = (name: string) => name;

test('the template of a release contains no name of a stage, an account or a region', () => {
  const { Resources, Outputs } = released();
  const text = JSON.stringify({ Resources, Outputs });
  const own = /kube-bootstrap-controller-dev|kbc-dev|eu-west-1|\b\d{12}\b|ServerlessDeploymentBucket/g;
  expect(text.match(own)).toBeNull();
});

test('the template of a release creates the same resources as a deployment from the repository to a stack with the same name', () => {
  const parameters = { SecretsPrefix: 'clusters/', Admission: 'on', CodeBucket: 'packages' };
  const ofRelease = resolveTemplate(released(), parameters, 'fleet').Resources;
  const { CodeBucket: _, ...others } = parameters;
  const ofRepository = resolveTemplate(nameReplacedResources(compiled(), hashOf), others, 'fleet').Resources;
  const bucket = ['ServerlessDeploymentBucket', 'ServerlessDeploymentBucketPolicy'];
  expect(Object.keys(ofRelease)).toEqual(Object.keys(ofRepository).filter((id) => !bucket.includes(id)));
  const same = Object.entries(ofRelease).filter(([, { Type }]) => !/^AWS::(Lambda::(Function|Layer)|IAM)/.test(Type));
  for (const [id, resource] of same) expect(resource).toEqual(ofRepository[id]);
  const [role, original] = [ofRelease, ofRepository].map((resources) => resources['AllocateRole']?.Properties);
  expect(role).toEqual({ ...original, RoleName: undefined });
});

/** The maximum size of a gzipped bundle in KB. It is smaller for the functions that connect to no cluster. */
const MOST_KB = 215;
const MOST_KB_OF: Readonly<Record<string, number>> = { allocate: 115, admission: 130 };
/**
 * Modules that no function may contain. The allocator is in the layer, client-node runs the plugins of a kubeconfig, and the
 * SDK's nested clients get credentials.
 */
const NOT_IN_A_BUNDLE =
  /node_modules\/(@kubernetes|@aws-sdk\/nested-clients|openid-client|dynalite|classic-level|level|jest|fast-check)\/|\/(local|test|cli|lib\/allocator)\//;
const zipOf = (name: string) => found(packaged.archives.get(name));

test('the layer contains only the allocator library', () => {
  expect([...readZip(zipOf('allocator')).keys()]).toEqual(['nodejs/allocator.mjs']);
});

test('Lambda can read all files of the packages', () => {
  for (const zip of packaged.archives.values()) expect(unreadableIn(zip)).toEqual([]);
});

test.each(HANDLERS)('the package of %s contains only a small bundle with the modules of the function', (name) => {
  const [[file, bundle], ...others] = [...readZip(zipOf(name))] as [[string, Buffer], ...unknown[]];
  expect({ file, others }).toEqual({ file: `functions/${name}.mjs`, others: [] });
  expect(gzipSync(bundle, { level: 9 }).length).toBeLessThanOrEqual((MOST_KB_OF[name] ?? MOST_KB) * 1024);
  const sources = packaged.maps.get(name)?.sources ?? [];
  expect(sources.filter((source) => source.endsWith(`/functions/${name}.ts`))).toHaveLength(1);
  expect(sources.filter((source) => NOT_IN_A_BUNDLE.test(source))).toEqual([]);
});

test('packaging fails if a parameter does not exist', async () => {
  const packaging = packageService({ alarm: 'true' });
  await expect(packaging).rejects.toMatchObject({
    stdout: expect.stringContaining('alarm is not a parameter; there are table, '),
  });
});
