import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { isGranted, shippedPolicy } from '../support/emulator-policy.ts';
import { uncompiledTemplate } from '../support/uncompiled-template.ts';

const { Statement: statements } = shippedPolicy('deployer');

const STACK = 'kube-bootstrap-controller-prod';
const arn = (service: string, resource: string) => `arn:aws:${service}:eu-west-1:123456789012:${resource}`;
const ROLE = 'arn:aws:iam::123456789012:role/kbc-prod-eu-west-1-allocate';
/**
 * The beginning of a name that CloudFormation generates. In such a name, CloudFormation cuts the name of the stack to 24 or 25
 * characters.
 */
const CUT = STACK.slice(0, 24);
const BUCKET = `arn:aws:s3:::${CUT}-serverlessdeploymentbuck-abc`;
const PACKAGE = `${BUCKET}/a.zip`;
const LAYER = arn('lambda', `layer:${STACK}-allocator:1`);
const FUNCTION = arn('lambda', `function:${STACK}-admission`);
const API = 'arn:aws:apigateway:eu-west-1::/restapis/a';

/** For each type of resource: the ARNs for which CloudFormation needs permission when it creates such a resource. */
const CONCERNS: Readonly<Record<string, readonly string[]>> = {
  'AWS::ApiGateway::Deployment': [`${API}/deployments`, `${API}/deployments/b`],
  'AWS::ApiGateway::Method': [`${API}/resources/b/methods/POST`],
  'AWS::ApiGateway::Resource': [`${API}/resources`, `${API}/resources/b`],
  'AWS::ApiGateway::RestApi': ['arn:aws:apigateway:eu-west-1::/restapis', API],
  'AWS::ApiGateway::Stage': [`${API}/stages`, `${API}/stages/admission`],
  'AWS::CloudWatch::Alarm': [arn('cloudwatch', `alarm:${STACK}-findings`)],
  'AWS::CloudWatch::CompositeAlarm': [arn('cloudwatch', `alarm:${STACK}-nothing-ran`)],
  'AWS::CloudWatch::Dashboard': [`arn:aws:cloudwatch::123456789012:dashboard/${STACK}`],
  'AWS::DynamoDB::Table': [arn('dynamodb', `table/${STACK}`)],
  'AWS::Events::Rule': [arn('events', `rule/${CUT}-a`)],
  'AWS::IAM::Role': [ROLE],
  'AWS::Lambda::Alias': [FUNCTION, `${FUNCTION}:live`],
  'AWS::Lambda::EventInvokeConfig': [FUNCTION],
  'AWS::Lambda::EventSourceMapping': [arn('lambda', 'event-source-mapping:1')],
  'AWS::Lambda::Function': [FUNCTION, LAYER, ROLE, PACKAGE],
  'AWS::Lambda::LayerVersion': [arn('lambda', `layer:${STACK}-allocator`), LAYER, PACKAGE],
  'AWS::Lambda::Permission': [FUNCTION],
  'AWS::Lambda::Url': [FUNCTION],
  'AWS::Lambda::Version': [FUNCTION, `${FUNCTION}:1`],
  'AWS::Logs::LogGroup': [arn('logs', `log-group:/aws/lambda/${STACK}-allocate`)],
  'AWS::S3::Bucket': [BUCKET],
  'AWS::S3::BucketPolicy': [BUCKET],
  'AWS::SQS::Queue': [arn('sqs', `${CUT}-a`)],
};

/** Calls that CloudFormation makes only for properties that the template lacks, or to delete the table, which is retained. */
const NOT_CALLED = [
  /^(elasticfilesystem|firehose|kinesis|s3files|s3tables):/,
  /^dynamodb:(DeleteTable|CreateTableReplica|AssociateTableReplica|ImportTable|(Batch)?(Get|Put|Update|Delete|Write)Item|Query|Scan) /,
  /^dynamodb:(Put|Delete)ResourcePolicy |^dynamodb:.*(KinesisStreaming|ContributorInsights)/,
  /^iam:(AttachRolePolicy|DetachRolePolicy|UpdateRole|UpdateRoleDescription|CreateServiceLinkedRole) /,
  /^iam:PassRole for AWS::(ApiGateway|Events|S3):/,
  /^kms:(ListAliases|RevokeGrant) /,
  /^lambda:(AssociateRuntimeAlias|PassCapacityProvider|GetCodeSigningConfig|PutRuntimeManagementConfig) /,
  /^codedeploy:|^lambda:(Put|Delete)ProvisionedConcurrencyConfig /,
  /^logs:(CreateLogDelivery|PutBearerTokenAuthentication|PutLogGroupDeletionProtection) /,
  /^logs:(Put|Delete)(DataProtection|Index|Resource)Policy /,
  /^(logs|s3):.* for AWS::(ApiGateway|DynamoDB):/,
  /^s3:(GetObjectVersion|REST\.PUT\.OBJECT|PutObjectAcl|DeleteBucketEncryption) /,
  /^s3:.*(Abac|Accelerate|Acl|Analytics|Cors|CORS|IntelligentTiering|Inventory|Lifecycle|Logging|Metadata|Metrics|Notification|ObjectLock|Ownership|Replication|Versioning|Website)/,
];

/** The folder of cfn-lint with the schemas of CloudFormation's handlers, which list the calls of each handler. */
const schemas = join(
  execFileSync('bash', [join(import.meta.dirname, 'install.sh'), 'emulator', '--folder'], { encoding: 'utf8' }).trim(),
  'lib/python3*/site-packages/cfnlint/data/schemas',
);
const read = (name: string) => JSON.parse(readFileSync(globSync(join(schemas, name))[0] ?? '', 'utf8'));
const files: Readonly<Record<string, string>> = read('providers/us-east-1.json');

function permissionsOf(type: string): string[] {
  const { handlers } = read(`resources/${files[type]}.json`);
  const operations = ['create', 'read', 'update', 'delete'];
  return [...new Set(operations.flatMap((operation) => handlers[operation]?.permissions ?? []))];
}

test('this test covers every resource type of the template', () => {
  const types = Object.values(uncompiledTemplate().Resources).map(({ Type }) => Type);
  expect([...new Set(types)].filter((type) => !(type in CONCERNS))).toEqual([]);
});

test.each(Object.entries(CONCERNS))('the deployer policy allows all calls of CloudFormation for %s', (type, arns) => {
  const isAllowed = (action: string) => {
    const own = arns.filter((one) => one.startsWith(`arn:aws:${action.split(':')[0]}:`));
    return (own.length === 0 ? ['*'] : own).some((resource) => isGranted({ action, resource }, statements));
  };
  const refused = permissionsOf(type).filter((action) => !isAllowed(action));
  const called = refused.filter((action) => !NOT_CALLED.some((pattern) => pattern.test(`${action} for ${type}`)));
  expect(called).toEqual([]);
});
