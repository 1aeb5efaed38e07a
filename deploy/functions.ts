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
  substitute,
  whether,
} from './cloudformation.ts';
import { ALIAS, ALIASED } from './versions.ts';

export const FUNCTIONS = [...LOOPS, 'deregister', 'allocate', 'admission', 'doctor'];

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

/** Returns the settings of asynchronous invocations. Lambda does not retry them: the next tick or the caller does. */
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
