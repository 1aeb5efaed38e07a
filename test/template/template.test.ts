import { readdirSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { LOOPS, SCHEDULE_SECONDS } from '../../lib/cluster/cluster-spec.ts';
import { CLOSING_MS, LISTING_MS, PASS_BUDGET_MS } from '../../lib/runtime/budgets.ts';
import { isGranted } from '../support/emulator-policy.ts';
import { packageService, type Resource, type Template } from './package-service.ts';

const STACK = 'kube-bootstrap-controller-dev';
/** But for the one that is off by default: admission.test.ts is about that. */
const NAMES = readdirSync(path.join(import.meta.dirname, '..', '..', 'functions'))
  .map((file) => path.basename(file, '.ts'))
  .filter((name) => name !== 'admission');

const EVERYTHING = {
  table: 'my-table',
  vpcSubnetIds: 'subnet-1,subnet-2',
  vpcSecurityGroupIds: 'sg-1',
  kmsKeyArn: 'arn:aws:kms:eu-west-1:123456789012:key/k',
  assumableRoleArns: 'arn:aws:iam::210987654321:role/a,arn:aws:iam::210987654321:role/b',
  alarmTopicArn: 'arn:aws:sns:eu-west-1:123456789012:on-call',
  logRetentionDays: '7',
  logLevel: 'DEBUG',
  clusterDimension: 'true',
  secretsPrefix: 'clusters/',
  tickConcurrency: '50',
  clustersPerTick: '1',
};
const NOTHING = { alarms: 'false', dashboard: 'false' };

let byDefault: Template;
let everything: Template;
let nothing: Template;

beforeAll(async () => {
  const packaged = await Promise.all([
    packageService(),
    packageService({ parameters: EVERYTHING }),
    packageService({ parameters: NOTHING, stage: 'prod' }),
  ]);
  [byDefault, everything, nothing] = packaged.map(({ template }) => template) as [Template, Template, Template];
}, 120_000);

function ofType({ Resources }: Template, type: string): readonly Resource[] {
  return Object.values(Resources).filter(({ Type }) => Type === type);
}

function functionOf(template: Template, name: string): Resource {
  return one(
    ofType(template, 'AWS::Lambda::Function'),
    ({ Properties }) => Properties.FunctionName === `${STACK}-${name}`,
  );
}

function one(resources: readonly Resource[], is: (resource: Resource) => boolean): Resource {
  const [found, ...others] = resources.filter(is);
  if (found === undefined || others.length > 0)
    throw new Error(`Found ${others.length + (found ? 1 : 0)} resources, not one.`);
  return found;
}

function byReference({ Resources }: Template, { 'Fn::GetAtt': [id] }: { 'Fn::GetAtt': [string, string] }): Resource {
  const found = Resources[id];
  if (found === undefined) throw new Error(`There is no resource ${id}.`);
  return found;
}

/** What the function's role allows: `action on resource`, and what it denies with a minus sign. */
function granted(template: Template, name: string): readonly string[] {
  const { Policies } = byReference(template, functionOf(template, name).Properties.Role).Properties;
  const statements = Policies.flatMap((policy: Resource['Properties']) => policy.PolicyDocument.Statement);
  return statements
    .flatMap(({ Effect, Action, Resource: resources }: Resource['Properties']) =>
      Action.flatMap((action: string) =>
        textsOf(resources).map((on) => `${Effect === 'Deny' ? '-' : ''}${action} on ${on}`),
      ),
    )
    .sort();
}

function mayWrite(template: Template, name: string, leadingKey: string, operation: string): boolean {
  const { Policies } = byReference(template, functionOf(template, name).Properties.Role).Properties;
  const statements = Policies.flatMap((policy: Resource['Properties']) => policy.PolicyDocument.Statement).map(
    (statement: Resource['Properties']) => ({ ...statement, Resource: textsOf(statement.Resource) }),
  );
  return isGranted({ action: `dynamodb:${operation}`, resource: TABLE, leadingKey }, statements);
}

function textsOf(resources: Resource['Properties']): string[] {
  if (!Array.isArray(resources)) return resources['Fn::Split'][1].split(',');
  return resources.map((resource) =>
    typeof resource === 'string'
      ? resource
      : 'Fn::Sub' in resource
        ? resource['Fn::Sub']
            .replace(/\$\{AWS::Partition\}/, 'aws')
            .replace(/\$\{AWS::Region\}:\$\{AWS::AccountId\}/, 'HERE')
        : resource['Fn::GetAtt'].join('.'),
  );
}

const TABLE = `arn:aws:dynamodb:HERE:table/${STACK}`;
const READS_KUBECONFIGS = [
  'secretsmanager:GetSecretValue on arn:aws:secretsmanager:HERE:secret:kube-bootstrap-controller/dev/*',
  'ssm:GetParameter on arn:aws:ssm:HERE:parameter/kube-bootstrap-controller/dev/*',
  ...['secretsmanager:GetSecretValue', 'ssm:GetParameter'].flatMap((action) => [
    `-${action} on arn:aws:secretsmanager:HERE:secret:kube-bootstrap-controller/dev/admission/*`,
    `-${action} on arn:aws:ssm:HERE:parameter/kube-bootstrap-controller/dev/admission/*`,
  ]),
];
const READS_NO_KUBECONFIG = new Set(['allocate']);
const QUEUES = {
  'system-namespaces': 'SystemNamespacesQueue',
  'kubernetes-service': 'KubernetesServiceQueue',
  'cluster-ip-repair': 'ClusterIpRepairQueue',
  'node-port-repair': 'NodePortRepairQueue',
};

const logsOf = (name: string) =>
  ['CreateLogStream', 'PutLogEvents'].map(
    (action) => `logs:${action} on arn:aws:logs:HERE:log-group:/aws/lambda/${STACK}-${name}:*`,
  );
const tableActions = (...actions: string[]) => actions.map((action) => `dynamodb:${action} on ${TABLE}`);
const ticksOf = (queue: string) =>
  ['SendMessage', 'ReceiveMessage', 'DeleteMessage', 'GetQueueAttributes'].map(
    (action) => `sqs:${action} on ${queue}.Arn`,
  );

describe('functions', () => {
  test('each file of functions/ is deployed under its own name', () => {
    const deployed = ofType(byDefault, 'AWS::Lambda::Function').map(({ Properties }) => Properties.Handler);
    expect(deployed.sort()).toEqual(NAMES.map((name) => `functions/${name}.handler`).sort());
  });

  test.each(NAMES)(
    '%s runs on Node 24 and arm64 with the allocator layer, without X-Ray or reserved concurrency',
    (name) => {
      const { Properties } = functionOf(byDefault, name);
      expect(Properties).toMatchObject({
        Runtime: 'nodejs24.x',
        Architectures: ['arm64'],
        Layers: [{ Ref: 'AllocatorLambdaLayer' }],
      });
      expect(Object.keys(Properties)).not.toEqual(expect.arrayContaining(['TracingConfig']));
      expect(Object.keys(Properties)).not.toEqual(expect.arrayContaining(['ReservedConcurrentExecutions']));
    },
  );

  test.each(LOOPS)('%s has the time for a whole pass, and ends before its next schedule', (loop) => {
    const timeoutMs = functionOf(byDefault, loop).Properties.Timeout * 1000;
    expect(timeoutMs).toBeGreaterThan(LISTING_MS + PASS_BUDGET_MS[loop] + CLOSING_MS);
    expect(timeoutMs).toBeLessThan(Math.max(60, SCHEDULE_SECONDS[loop]) * 1000);
  });

  test('nothing is retried: the next tick is the retry', () => {
    const configured = ofType(byDefault, 'AWS::Lambda::EventInvokeConfig');
    expect(configured).toHaveLength(NAMES.length);
    for (const { Properties } of configured) {
      expect(Properties).toMatchObject({ MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: 60 });
    }
  });

  test.each(NAMES)('the environment of %s is what its code asks for', (name) => {
    const { Variables } = functionOf(byDefault, name).Properties.Environment;
    expect(Variables).toMatchObject({
      TABLE_NAME: STACK,
      STACK,
      REPORTING_INSTANCE: STACK,
      CLUSTER_DIMENSION: 'false',
      POWERTOOLS_SERVICE_NAME: STACK,
      POWERTOOLS_LOG_LEVEL: 'INFO',
    });
  });

  test.each(LOOPS)('%s knows its own queue of ticks', (loop) => {
    expect(functionOf(byDefault, loop).Properties.Environment.Variables.TICK_QUEUE_URL).toEqual({ Ref: QUEUES[loop] });
  });

  test('doctor knows all of them', () => {
    const { TICK_QUEUE_URLS } = functionOf(byDefault, 'doctor').Properties.Environment.Variables;
    expect(TICK_QUEUE_URLS).toEqual({ 'Fn::Join': [',', Object.values(QUEUES).map((Ref) => ({ Ref }))] });
  });

  test.each(NAMES)('the log lines of %s end some day', (name) => {
    const group = (template: Template) =>
      one(
        ofType(template, 'AWS::Logs::LogGroup'),
        ({ Properties }) => Properties.LogGroupName === `/aws/lambda/${STACK}-${name}`,
      );
    expect(group(byDefault).Properties.RetentionInDays).toBe(30);
    expect(group(everything).Properties.RetentionInDays).toBe(7);
  });
});

describe('ticks', () => {
  test.each(LOOPS)('a rule invokes %s as often as its loop is due, but no more than once a minute', (loop) => {
    const minutes = Math.max(1, SCHEDULE_SECONDS[loop] / 60);
    const rule = one(
      ofType(byDefault, 'AWS::Events::Rule'),
      ({ Properties }) => Properties.Targets[0].Id === `${loop}Schedule`,
    );
    expect(rule.Properties).toMatchObject({
      ScheduleExpression: minutes === 1 ? 'rate(1 minute)' : `rate(${minutes} minutes)`,
      State: 'ENABLED',
    });
  });

  test('nothing else is on a schedule', () => {
    expect(ofType(byDefault, 'AWS::Events::Rule')).toHaveLength(LOOPS.length);
  });

  test.each(LOOPS)('%s takes the messages of its own queue, one at a time', (loop) => {
    const source = one(
      ofType(byDefault, 'AWS::Lambda::EventSourceMapping'),
      ({ Properties }) => Properties.EventSourceArn['Fn::GetAtt'][0] === QUEUES[loop],
    );
    expect(byReference(byDefault, source.Properties.FunctionName)).toBe(functionOf(byDefault, loop));
    expect(source.Properties).toMatchObject({ BatchSize: 1, Enabled: true, ScalingConfig: { MaximumConcurrency: 10 } });
  });

  test.each(LOOPS)(
    'the messages of %s are gone after two minutes, and hidden as long as they are worked on',
    (loop) => {
      const { Properties } = byReference(byDefault, { 'Fn::GetAtt': [QUEUES[loop], 'Arn'] });
      expect(Properties).toMatchObject({
        QueueName: `${STACK}-${loop}`,
        MessageRetentionPeriod: 120,
        SqsManagedSseEnabled: true,
      });
      expect(Properties.VisibilityTimeout).toBeGreaterThanOrEqual(functionOf(byDefault, loop).Properties.Timeout);
      expect(Properties).not.toHaveProperty('RedrivePolicy');
    },
  );

  test.each(LOOPS)('a parameter keeps the clusters of %s in processes of their own', (loop) => {
    expect(functionOf(byDefault, loop).Properties.Environment.Variables.CLUSTERS_PER_TICK).toBe('16');
    expect(functionOf(everything, loop).Properties.Environment.Variables.CLUSTERS_PER_TICK).toBe('1');
  });

  test('a parameter says how many ticks of a loop run at the same time', () => {
    for (const { Properties } of ofType(everything, 'AWS::Lambda::EventSourceMapping')) {
      expect(Properties.ScalingConfig).toEqual({ MaximumConcurrency: 50 });
    }
  });
});

describe('roles', () => {
  test('each function has its own', () => {
    const roles = NAMES.map((name) => functionOf(byDefault, name).Properties.Role['Fn::GetAtt'][0]);
    expect(new Set(roles).size).toBe(NAMES.length);
    expect(ofType(byDefault, 'AWS::IAM::Role')).toHaveLength(NAMES.length);
  });

  test.each(['system-namespaces', 'cluster-ip-repair', 'node-port-repair'] as const)(
    '%s may log, use the table, read kubeconfigs and pass ticks to itself, and nothing else',
    (name) => {
      const allowed = [
        ...logsOf(name),
        ...tableActions('GetItem', 'PutItem', 'Query'),
        ...READS_KUBECONFIGS,
        ...ticksOf(QUEUES[name]),
      ];
      expect(granted(byDefault, name)).toEqual(allowed.sort());
    },
  );

  test('kubernetes-service may also delete leases', () => {
    const name = 'kubernetes-service';
    const table = tableActions('GetItem', 'PutItem', 'Query', 'DeleteItem');
    expect(granted(byDefault, name)).toEqual(
      [...logsOf(name), ...table, ...READS_KUBECONFIGS, ...ticksOf(QUEUES[name])].sort(),
    );
  });

  test('deregister may log, use the table and read kubeconfigs, and nothing else', () => {
    const allowed = [...logsOf('deregister'), ...tableActions('GetItem', 'PutItem', 'Query'), ...READS_KUBECONFIGS];
    expect(granted(byDefault, 'deregister')).toEqual(allowed.sort());
  });

  test('allocate may log and use the table, and nothing else: it reaches no cluster', () => {
    const allowed = [...logsOf('allocate'), ...tableActions('GetItem', 'PutItem', 'Query')];
    expect(granted(byDefault, 'allocate')).toEqual(allowed.sort());
  });

  test('whoever may invoke the functions is for IAM to say: none has a URL or a policy of its own', () => {
    for (const type of ['AWS::Lambda::Url', 'AWS::ApiGateway::RestApi', 'AWS::ApiGatewayV2::Api']) {
      expect(ofType(byDefault, type)).toEqual([]);
    }
    const invokers = ofType(byDefault, 'AWS::Lambda::Permission').map(({ Properties }) => Properties.Principal);
    expect(invokers).toEqual(LOOPS.map(() => 'events.amazonaws.com'));
  });

  test('doctor may also delete what it wrote to prove the table, and ask how long the queues are', () => {
    const table = tableActions('GetItem', 'PutItem', 'Query', 'DeleteItem');
    const queues = Object.values(QUEUES).map((queue) => `sqs:GetQueueAttributes on ${queue}.Arn`);
    expect(granted(byDefault, 'doctor')).toEqual(
      [...logsOf('doctor'), ...table, ...READS_KUBECONFIGS, ...queues].sort(),
    );
  });

  test.each([
    ['allocate', 'prod', '#clusters'],
    ['deregister', 'prod', '#clusters'],
    ['kubernetes-service', 'prod', '#clusters', 'DeleteItem'],
    ['doctor', '#doctor', 'prod'],
    ['doctor', '#doctor', 'prod', 'DeleteItem'],
  ])('%s may write the partition %s and not %s', (name, allowed, refused, operation = 'PutItem') => {
    expect(mayWrite(byDefault, name, allowed, operation)).toBe(true);
    expect(mayWrite(byDefault, name, refused, operation)).toBe(false);
  });

  test.each(LOOPS)('%s may claim a cluster for its stack', (loop) => {
    expect(mayWrite(byDefault, loop, '#clusters', 'PutItem')).toBe(true);
  });

  test('another stage reads neither the kubeconfigs nor the table of this one', () => {
    const roles = JSON.stringify(ofType(nothing, 'AWS::IAM::Role'));
    expect(roles).toContain(':secret:kube-bootstrap-controller/prod/*');
    expect(roles).not.toMatch(/kube-bootstrap-controller(-|\/)(dev|\*)/);
  });

  test.each(NAMES)('parameters let %s reach kubeconfigs, if it needs any, and be in a network', (name) => {
    const added = granted(everything, name).filter((line) => /^-?(kms|sts|ec2):/.test(line));
    const interfaces = [
      'AssignPrivateIpAddresses',
      'CreateNetworkInterface',
      'DeleteNetworkInterface',
      'DescribeNetworkInterfaces',
      'DescribeSubnets',
      'UnassignPrivateIpAddresses',
    ];
    const forKubeconfigs = [
      `kms:Decrypt on ${EVERYTHING.kmsKeyArn}`,
      'sts:AssumeRole on arn:aws:iam::210987654321:role/a',
      'sts:AssumeRole on arn:aws:iam::210987654321:role/b',
    ];
    expect(added).toEqual([
      ...interfaces.map((action) => `-ec2:${action} on *`),
      ...interfaces.map((action) => `ec2:${action} on *`),
      ...(READS_NO_KUBECONFIG.has(name) ? [] : forKubeconfigs),
    ]);
  });

  test('secrets are those whose names begin as a parameter says', () => {
    expect(granted(everything, 'deregister')).toEqual(
      expect.arrayContaining([
        'secretsmanager:GetSecretValue on arn:aws:secretsmanager:HERE:secret:clusters/*',
        'ssm:GetParameter on arn:aws:ssm:HERE:parameter/clusters/*',
      ]),
    );
  });

  test('only the functions themselves are denied the network interfaces, not Lambda in their name', () => {
    const { Policies } = byReference(everything, functionOf(everything, 'deregister').Properties.Role).Properties;
    const statements = Policies.flatMap((policy: Resource['Properties']) => policy.PolicyDocument.Statement);
    for (const { Effect, Action, Condition } of statements) {
      if (!Action[0].startsWith('ec2:')) continue;
      if (Effect === 'Deny') expect(Condition.ArnLike).toHaveProperty(['lambda:SourceFunctionArn']);
      else expect(Condition).toBeUndefined();
    }
  });
});

describe('the table', () => {
  test('is made on demand, keyed as the adapter reads it, swept by ttl, and outlives the stack', () => {
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

  test('is an existing one where a parameter names it: it is used, and none is made', () => {
    expect(ofType(everything, 'AWS::DynamoDB::Table')).toEqual([]);
    for (const name of NAMES) {
      expect(functionOf(everything, name).Properties.Environment.Variables.TABLE_NAME).toBe('my-table');
      const tables = granted(everything, name).filter((line) => line.startsWith('dynamodb:'));
      expect(tables.every((line) => line.endsWith(' on arn:aws:dynamodb:HERE:table/my-table'))).toBe(true);
    }
  });
});

test('functions are in a network only when parameters name one', () => {
  for (const name of NAMES) {
    expect(functionOf(byDefault, name).Properties).not.toHaveProperty('VpcConfig');
    expect(functionOf(everything, name).Properties.VpcConfig).toEqual({
      SubnetIds: { 'Fn::Split': [',', 'subnet-1,subnet-2'] },
      SecurityGroupIds: { 'Fn::Split': [',', 'sg-1'] },
    });
  }
});

describe('alarms and dashboard', () => {
  test('are there by default, and tell nobody', () => {
    expect(ofType(byDefault, 'AWS::CloudWatch::Dashboard')).toHaveLength(1);
    for (const { Properties } of ofType(byDefault, 'AWS::CloudWatch::Alarm')) {
      expect(Properties).toMatchObject({ AlarmActions: [], OKActions: [] });
    }
  });

  test('tell the topic that a parameter names', () => {
    for (const { Properties } of ofType(everything, 'AWS::CloudWatch::Alarm')) {
      expect(Properties).toMatchObject({
        AlarmActions: [EVERYTHING.alarmTopicArn],
        OKActions: [EVERYTHING.alarmTopicArn],
      });
    }
  });

  test('the dashboard shows every alarm', () => {
    const [dashboard] = ofType(byDefault, 'AWS::CloudWatch::Dashboard');
    const [{ properties }] = JSON.parse(dashboard?.Properties.DashboardBody['Fn::Sub']).widgets;
    const shown = properties.alarms.map((arn: string) => arn.split(':alarm:')[1]);
    const alarms = ofType(byDefault, 'AWS::CloudWatch::Alarm').map(({ Properties }) => Properties.AlarmName);
    expect(shown.sort()).toEqual(alarms.sort());
  });

  test('are left out when parameters say so', () => {
    expect(ofType(nothing, 'AWS::CloudWatch::Alarm')).toEqual([]);
    expect(ofType(nothing, 'AWS::CloudWatch::Dashboard')).toEqual([]);
  });
});

test.each(['byDefault', 'everything', 'nothing'])(
  'no condition is left for CloudFormation to work out: %s',
  (which) => {
    const template = { byDefault, everything, nothing }[which];
    expect(template).not.toHaveProperty('Conditions');
    expect(JSON.stringify(template)).not.toMatch(/Fn::If|AWS::NoValue/);
  },
);
