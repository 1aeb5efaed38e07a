import { EVENT_SOURCE } from '../lib/aws/send-batches.ts';
import { TOKEN_SECONDS } from '../lib/kubernetes/credentials.ts';
import { LOOPS, type Loop, STACK_LOOP } from '../lib/spec/cluster-spec.ts';
import { defined } from '../lib/util/values.ts';
import {
  attribute,
  conditionOf,
  type Fields,
  ownArn,
  pascalCase,
  queueOf,
  type Resource,
  type Resources,
  ref,
  SECRETS_PREFIX,
  substitute,
  TABLE_NAME,
  type Value,
  whether,
} from './cloudformation.ts';

const TABLE_ARN = ownArn('dynamodb', 'table/${Table}', { Table: TABLE_NAME });

/** Allows each function that reads or writes the table to use the table's KMS key, but only through DynamoDB. */
const TABLE_KEY = policyIf(
  'UsesTableKey',
  'table-key',
  allow(
    ['kms:Decrypt', 'kms:DescribeKey', 'kms:Encrypt', 'kms:GenerateDataKey*', 'kms:ReEncrypt*'],
    [ref('TableKeyArn')],
    { StringEquals: { 'kms:ViaService': substitute('dynamodb.${AWS::Region}.amazonaws.com') } },
  ),
);

const SECRETS = {
  Prefix: SECRETS_PREFIX,
  Region: whether('HasSecretsRegion', ref('SecretsRegion'), ref('AWS::Region')),
};

function secretArns(suffix: string): readonly [Value, Value] {
  const arn = (service: string, kind: string) =>
    substitute(`arn:\${AWS::Partition}:${service}:\${Region}:\${AWS::AccountId}:${kind}\${Prefix}${suffix}`, SECRETS);
  return [arn('secretsmanager', 'secret:'), arn('ssm', 'parameter/')];
}

function readSecrets(suffix: string): Fields[] {
  const [secrets, parameters] = secretArns(suffix);
  return [allow(['secretsmanager:GetSecretValue'], [secrets]), allow(['ssm:GetParameter'], [parameters])];
}

function policy(name: string, ...statements: readonly Value[]): Fields {
  return { PolicyName: name, PolicyDocument: { Version: '2012-10-17', Statement: statements } };
}

function policyIf(condition: string, name: string, ...statements: readonly Value[]): Fields {
  return whether(condition, policy(name, ...statements));
}

function allow(Action: readonly string[], Resource: Value, Condition?: Value): Fields {
  return { Effect: 'Allow', Action, Resource, ...defined({ Condition }) };
}

/** Returns a condition on all values of a key. The key must be present: `ForAllValues` alone accepts a missing key. */
function allValues(operator: string, key: string, patterns: Value): Fields {
  return { [`ForAllValues:${operator}`]: { [key]: patterns }, Null: { [key]: 'false' } };
}

function partitions(operator: string, pattern: string): Fields {
  return allValues(operator, 'dynamodb:LeadingKeys', pattern);
}
const OF_CLUSTERS = partitions('StringNotLike', '#*');

/** @param writtenTo the condition of writes. Without it, writes to every partition are allowed. */
function tablePolicy(writtenTo: Fields | undefined, reads = ['dynamodb:GetItem', 'dynamodb:Query']): Fields {
  return policy('table', allow(reads, [TABLE_ARN]), allow(['dynamodb:PutItem'], [TABLE_ARN], writtenTo));
}

/** The table policy of functions whose callers choose the cluster and what is written. Allows no writes to `#` partitions. */
const TABLE_OF_CLUSTER = tablePolicy(OF_CLUSTERS);

/** Allows functions to read kubeconfigs, but not the webhook's tokens with the same prefix, because no loop needs tokens. */
const KUBECONFIGS = policy('kubeconfigs', ...readSecrets('*'), {
  Effect: 'Deny',
  Action: ['secretsmanager:GetSecretValue', 'ssm:GetParameter'],
  Resource: secretArns('admission/*'),
});
const KMS_KEY = policyIf('UsesKmsKey', 'kms-key', allow(['kms:Decrypt'], [ref('KmsKeyArn')]));
const OTHER_ACCOUNTS = policyIf(
  'AssumesRoles',
  'other-accounts',
  allow(['sts:AssumeRole'], { 'Fn::Split': [',', ref('AssumableRoleArns')] }),
);
/**
 * Allows functions to assume roles of any account in the parts of the organization that `AssumableOrgPaths` lists. A request
 * without `aws:ResourceOrgPaths` matches no pattern.
 */
const ORGANIZATION = policyIf(
  'AssumesOrgRole',
  'organization',
  allow(['sts:AssumeRole'], [substitute('arn:${AWS::Partition}:iam::*:role/${AssumableOrgRole}')], {
    'ForAnyValue:StringLike': { 'aws:ResourceOrgPaths': { 'Fn::Split': [',', ref('AssumableOrgPaths')] } },
  }),
);
const WEB_IDENTITY = policyIf(
  'UsesWebIdentity',
  'web-identity',
  allow(['sts:GetWebIdentityToken'], ['*'], {
    ...allValues('StringLike', 'sts:IdentityTokenAudience', { 'Fn::Split': [',', ref('WebIdentityServers')] }),
    NumericLessThanEquals: { 'sts:DurationSeconds': TOKEN_SECONDS },
  }),
);
const TO_KUBECONFIGS = [KUBECONFIGS, KMS_KEY, OTHER_ACCOUNTS, ORGANIZATION, WEB_IDENTITY];

const EVENTS = policy(
  'events',
  allow(['events:PutEvents'], [ownArn('events', 'event-bus/default')], {
    StringEquals: { 'events:source': EVENT_SOURCE },
  }),
);

/** Allows functions to read the target groups of specs. IAM does not support resource-level permissions for this action. */
const TARGET_GROUPS = policy('target-groups', allow(['elasticloadbalancing:DescribeTargetHealth'], ['*']));

const INTERFACES = [
  'ec2:AssignIpv6Addresses',
  'ec2:AssignPrivateIpAddresses',
  'ec2:CreateNetworkInterface',
  'ec2:DeleteNetworkInterface',
  'ec2:DescribeNetworkInterfaces',
  'ec2:DescribeSubnets',
  'ec2:UnassignIpv6Addresses',
  'ec2:UnassignPrivateIpAddresses',
];
/** Allows Lambda to create network interfaces for the function. The function's own code is denied these actions. */
const NETWORK = policyIf('UsesVpc', 'network', allow(INTERFACES, ['*']), {
  Effect: 'Deny',
  Action: INTERFACES,
  Resource: ['*'],
  Condition: { ArnLike: { 'lambda:SourceFunctionArn': [ownArn('lambda', 'function:${AWS::StackName}-*')] } },
});

const queueArn = (loop: Loop) => attribute(queueOf(loop), 'Arn');
const TICK_ACTIONS = ['sqs:SendMessage', 'sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes'];

/** The policies of each function, without the policies for logs, the network and the KMS key of the table. */
const POLICIES: Readonly<Record<string, readonly Value[]>> = {
  ...Object.fromEntries(
    LOOPS.map((loop) => {
      // Only the loop that claims clusters without an owner writes registrations.
      const table = tablePolicy(loop === STACK_LOOP ? undefined : partitions('StringNotLike', '#clusters'));
      const ticks = policy('ticks', allow(TICK_ACTIONS, [queueArn(loop)]));
      const own = loop === 'kubernetes-service' ? [TARGET_GROUPS] : [];
      return [loop, [table, ...TO_KUBECONFIGS, ticks, EVENTS, ...own]];
    }),
  ),
  deregister: [TABLE_OF_CLUSTER, ...TO_KUBECONFIGS, EVENTS],
  allocate: [tablePolicy(OF_CLUSTERS, ['dynamodb:BatchGetItem', 'dynamodb:GetItem'])],
  doctor: [
    // The doctor writes only its test item.
    tablePolicy(partitions('StringEquals', '#doctor')),
    ...TO_KUBECONFIGS,
    TARGET_GROUPS,
    policy('ticks', allow(['sqs:GetQueueAttributes'], LOOPS.map(queueArn))),
  ],
  // This function connects to no cluster, and may read only the tokens of clusters.
  admission: [TABLE_OF_CLUSTER, policy('tokens', ...readSecrets('admission/*')), KMS_KEY],
};

/**
 * Returns one role per function. A role allows only the actions and resources that its function needs.
 * @param prefix the prefix of the names of the roles
 */
export function roles(prefix: string): Resources {
  return Object.fromEntries(
    Object.entries(POLICIES).map(([name, policies]) => [
      `${pascalCase(name)}Role`,
      role(`${prefix}-${name}`, name, policies),
    ]),
  );
}

function role(roleName: string, functionName: string, policies: readonly Value[]): Resource {
  const logs = ownArn('logs', `log-group:/aws/lambda/\${AWS::StackName}-${functionName}:*`);
  return {
    Type: 'AWS::IAM::Role',
    ...conditionOf(functionName),
    Properties: {
      // "serverless deploy function" looks up a role by its name.
      RoleName: roleName,
      Path: ref('RolePath'),
      PermissionsBoundary: whether('HasPermissionsBoundary', ref('PermissionsBoundaryArn')),
      AssumeRolePolicyDocument: {
        Version: '2012-10-17',
        Statement: [{ Effect: 'Allow', Principal: { Service: 'lambda.amazonaws.com' }, Action: 'sts:AssumeRole' }],
      },
      Policies: [
        policy('logs', allow(['logs:CreateLogStream', 'logs:PutLogEvents'], [logs])),
        ...policies,
        TABLE_KEY,
        NETWORK,
      ],
    },
  };
}
