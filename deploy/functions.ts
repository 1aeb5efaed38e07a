import { LOOPS, type Loop } from '../lib/spec/cluster-spec.ts';
import {
  attribute,
  conditionOf,
  type Fields,
  logicalId,
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

export const FUNCTIONS = [...LOOPS, 'deregister', 'allocate', 'admission', 'doctor'];

/** The functions with synchronous callers. Callers use an alias, so that code, layer and settings change in one step. */
export const ALIASED: readonly string[] = ['allocate', 'admission'];
/** The name of the alias. deploy/admission-endpoint.yml, deploy/policies and the docs also contain this name. */
const ALIAS = 'live';

/** Overrides of a resource that osls compiles. Each property replaces the property of the same name. */
type Extension = Partial<Pick<Resource, 'Condition' | 'Properties'>>;

/** EventBridge drops a scheduled event after 60 s, because the next event is the retry. */
const RETRY_POLICY = { MaximumEventAgeInSeconds: 60, MaximumRetryAttempts: 2 };

const VPC = whether('UsesVpc', {
  SubnetIds: { 'Fn::Split': [',', ref('VpcSubnetIds')] },
  SecurityGroupIds: { 'Fn::Split': [',', ref('VpcSecurityGroupIds')] },
  Ipv6AllowedForDualStack: ref('VpcIpv6'),
});

/**
 * Returns the overrides of the functions in serverless.yml. Names contain the stack's name, so that one template serves every
 * stage, and parameters become references.
 */
export function extensions(): Readonly<Record<string, Extension>> {
  const ofFunctions = FUNCTIONS.map((name) => ({ ...extensionsOf(name), ...(isLoop(name) && ofEvents(name)) }));
  const layer: Extension = { Properties: { LayerName: substitute('${AWS::StackName}-allocator') } };
  return Object.assign({ AllocatorLambdaLayer: layer }, ...ofFunctions);
}

/** Returns the settings of asynchronous invocations. Lambda does not retry a failure: the next tick or the caller does. */
export function invocations(): Resources {
  return Object.fromEntries(
    FUNCTIONS.map((name) => {
      const id = logicalId(name);
      const isAliased = ALIASED.includes(name);
      const of = { FunctionName: ref(`${id}LambdaFunction`), Qualifier: isAliased ? ALIAS : '$LATEST' };
      const config: Resource = {
        Type: 'AWS::Lambda::EventInvokeConfig',
        ...conditionOf(name),
        ...(isAliased && { DependsOn: `${id}Alias` }),
        Properties: { ...of, MaximumEventAgeInSeconds: 60, MaximumRetryAttempts: 0 },
      };
      return [`${id}Invocation`, config];
    }),
  );
}

function extensionsOf(name: string): Readonly<Record<string, Extension>> {
  const id = logicalId(name);
  const properties: Fields = {
    FunctionName: substitute(`\${AWS::StackName}-${name}`),
    MemorySize: ref(name.endsWith('-repair') ? 'RepairMemory' : 'LoopMemory'),
    VpcConfig: VPC,
    ...(name === 'admission' && {
      ReservedConcurrentExecutions: ref('AdmissionConcurrency'),
    }),
  };
  const logs: Fields = {
    LogGroupName: substitute(`/aws/lambda/\${AWS::StackName}-${name}`),
    RetentionInDays: ref('LogRetentionDays'),
    KmsKeyId: whether('UsesLogsKey', ref('LogsKeyArn')),
  };
  return {
    [`${id}LambdaFunction`]: { ...conditionOf(name), Properties: properties },
    [`${id}LogGroup`]: { ...conditionOf(name), Properties: logs },
  };
}

function ofEvents(loop: string): Readonly<Record<string, Extension>> {
  const id = logicalId(loop);
  const target = { Id: `${loop}Schedule`, Arn: attribute(`${id}LambdaFunction`, 'Arn'), RetryPolicy: RETRY_POLICY };
  return {
    [`${id}EventsRuleSchedule1`]: { Properties: { Targets: [target] } },
    [`${id}EventSourceMappingSQS${queueOf(loop)}`]: {
      Properties: { ScalingConfig: { MaximumConcurrency: ref('TickConcurrency') } },
    },
  };
}

export function isLoop(name: string): name is Loop {
  return LOOPS.some((loop) => loop === name);
}

/**
 * Returns a version and an alias for each function in `ALIASED`. A version never changes. CloudFormation publishes a new version
 * only for a new logical id, which deploy/compiled-template.ts derives from the code, or for a new description.
 */
export function versions(): Resources {
  return Object.fromEntries(ALIASED.flatMap((name) => Object.entries(versionOf(name))));
}

/** CloudFormation keeps old versions, because callers may invoke them during an update. Lambda deletes them with the function. */
const KEPT = { DeletionPolicy: 'Retain', UpdateReplacePolicy: 'Retain' };

function versionOf(name: string): Resources {
  const id = logicalId(name);
  const of = { FunctionName: ref(`${id}LambdaFunction`) };
  const version = { ...of, Description: settingsOf(name) };
  const alias = { ...of, FunctionVersion: attribute(`${id}Version`, 'Version'), Name: ALIAS };
  return {
    [`${id}Version`]: { Type: 'AWS::Lambda::Version', ...KEPT, ...conditionOf(name), Properties: version },
    [`${id}Alias`]: { Type: 'AWS::Lambda::Alias', ...conditionOf(name), Properties: alias },
  };
}

/**
 * Returns the description of a version: the values of all parameters that the version contains, so that a change of
 * such a value publishes a new version. The limit is 256 characters, so ids are written without their common prefix.
 * The description must not contain other parameters: CloudFormation would then request a new version of an unchanged
 * function, and Lambda does not publish such a version.
 */
function settingsOf(name: string): Fields {
  const settings = ['RolePath', 'LogLevel', 'LoopMemory'].map(ref);
  return { 'Fn::Join': [' ', [...settings, TABLE_NAME, VPC_SETTINGS, ...(name === 'admission' ? OF_ADMISSION : [])]] };
}

const OF_ADMISSION: readonly Value[] = [
  ...['AdmissionOnFailure', 'AdmissionDeadlineSeconds', 'AdmissionTokenStore'].map(ref),
  SECRETS_PREFIX,
];

const VPC_SETTINGS = whether(
  'UsesVpc',
  substitute('${VpcIpv6} ${Subnets} ${Groups}', {
    Subnets: without('subnet-0', 'VpcSubnetIds'),
    Groups: without('sg-0', 'VpcSecurityGroupIds'),
  }),
  '',
);

function without(text: string, parameter: string): Fields {
  return { 'Fn::Join': ['', { 'Fn::Split': [text, ref(parameter)] }] };
}
