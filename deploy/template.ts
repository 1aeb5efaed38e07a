import { LOOPS } from '../lib/cluster/cluster-spec.ts';
import { ADMISSION_ENDPOINT, ADMISSION_URL } from './admission-endpoint.ts';
import { alarms } from './alarms.ts';
import {
  type Fields,
  logicalId,
  type Resource,
  type Resources,
  ref,
  STACK,
  substitute,
  whether,
} from './cloudformation.ts';
import { DASHBOARD } from './dashboard.ts';
import { loopResources, queueOf } from './loops.ts';
import { templateParameters } from './parameters.ts';
import { SECRETS_PREFIX } from './roles.ts';
import { TABLE, TABLE_NAME } from './table.ts';

export interface Template {
  readonly Resources: Resources;
  readonly Outputs?: Fields;
  readonly [section: string]: unknown;
}

const FUNCTIONS = [...LOOPS, 'deregister', 'allocate', 'admission', 'doctor'];

const is = (parameter: string, value: string): Fields => ({ 'Fn::Equals': [ref(parameter), value] });
const isSet = (parameter: string): Fields => ({ 'Fn::Not': [is(parameter, '')] });
const both = (one: string, other: Fields): Fields => ({ 'Fn::And': [{ Condition: one }, other] });

/** Which parts a stack has, by its parameters. */
const CONDITIONS: Fields = {
  OwnsTable: is('TableName', ''),
  UsesVpc: isSet('VpcSubnetIds'),
  UsesKmsKey: isSet('KmsKeyArn'),
  UsesTableKey: isSet('TableKeyArn'),
  UsesLogsKey: isSet('LogsKeyArn'),
  AssumesRoles: isSet('AssumableRoleArns'),
  UsesWebIdentity: isSet('WebIdentityServers'),
  HasPermissionsBoundary: isSet('PermissionsBoundaryArn'),
  HasSecretsPrefix: isSet('SecretsPrefix'),
  HasSecretsRegion: isSet('SecretsRegion'),
  HasAlarms: is('Alarms', 'true'),
  HasAlarmTopic: isSet('AlarmTopicArn'),
  HasDashboard: is('Dashboard', 'true'),
  HasAdmission: is('Admission', 'on'),
  HasAdmissionUrl: both('HasAdmission', is('AdmissionEndpoint', 'functionUrl')),
  HasAdmissionApi: both('HasAdmission', is('AdmissionEndpoint', 'apiGateway')),
  HasPrivateAdmission: both('HasAdmissionApi', isSet('AdmissionVpcEndpointIds')),
  HasAdmissionAlarms: both('HasAdmission', is('Alarms', 'true')),
  HasAdmissionUrlAlarms: both('HasAdmissionUrl', is('Alarms', 'true')),
  HasAdmissionApiAlarms: both('HasAdmissionApi', is('Alarms', 'true')),
  ReservesAdmission: { 'Fn::Not': [is('AdmissionConcurrency', 'none')] },
};

const RULES: Fields = {
  VpcIsWhole: {
    Assertions: [
      {
        Assert: {
          'Fn::Or': [
            { 'Fn::And': [is('VpcSubnetIds', ''), is('VpcSecurityGroupIds', '')] },
            { 'Fn::And': [isSet('VpcSubnetIds'), isSet('VpcSecurityGroupIds')] },
          ],
        },
        AssertDescription: 'VpcSubnetIds, VpcSecurityGroupIds: set both, or neither.',
      },
    ],
  },
};

const OUTPUTS: Fields = {
  TableName: { Description: 'The table that holds everything', Value: TABLE_NAME },
  RegisterCommand: {
    Description: 'Registers a cluster with the stack',
    Value: substitute('npx kbctl cluster apply -f cluster.yml --table ${Table}', { Table: TABLE_NAME }),
  },
  StatusCommand: {
    Description: 'Lists the clusters of the stack',
    Value: substitute('npx kbctl status --table ${Table}', { Table: TABLE_NAME }),
  },
  DashboardUrl: {
    Condition: 'HasDashboard',
    Description: 'The dashboard',
    Value: substitute(
      'https://${AWS::Region}.console.aws.amazon.com/cloudwatch/home?region=${AWS::Region}#dashboards/dashboard/${AWS::StackName}',
    ),
  },
  AdmissionUrl: {
    Condition: 'HasAdmission',
    Description: 'Where API servers send reviews, followed by the name of the cluster',
    Value: ADMISSION_URL,
  },
};

/** Adds to what osls compiles everything that is not code: what invokes the functions, what they use, and their settings. */
export function completeTemplate(compiled: Template): Template {
  const added: Resources = { ...TABLE, ...loopResources(), ...ADMISSION_ENDPOINT, ...alarms(), ...DASHBOARD };
  return {
    ...compiled,
    Parameters: templateParameters(),
    Rules: RULES,
    Conditions: CONDITIONS,
    Resources: { ...mapResources(compiled.Resources), ...added },
    Outputs: { ...compiled.Outputs, ...OUTPUTS },
  };
}

function mapResources(resources: Resources): Resources {
  return Object.fromEntries(
    Object.entries(resources).flatMap(([id, resource]) => [
      [id, adjusted(id, resource)],
      ...invocationOf(id, resource),
    ]),
  );
}

/** A failed invocation is not retried: the next tick is the retry. */
function invocationOf(id: string, { Type }: Resource): [string, Resource][] {
  if (Type !== 'AWS::Lambda::Function') return [];
  const invocation: Resource = {
    Type: 'AWS::Lambda::EventInvokeConfig',
    ...(id.startsWith('Admission') && { Condition: 'HasAdmission' }),
    Properties: {
      FunctionName: ref(id),
      Qualifier: '$LATEST',
      MaximumEventAgeInSeconds: 60,
      MaximumRetryAttempts: 0,
    },
  };
  return [[id.replace('LambdaFunction', 'Invocation'), invocation]];
}

function adjusted(id: string, resource: Resource): Resource {
  const functionName = FUNCTIONS.find((name) => id.startsWith(logicalId(name))) ?? '';
  return {
    ...resource,
    ...(functionName === 'admission' && { Condition: 'HasAdmission' }),
    Properties: { ...resource.Properties, ...propertiesOf(resource.Type, functionName) },
  };
}

/** Names follow the stack, so that one template serves every stage; settings are parameters. */
function propertiesOf(type: string, functionName: string): Fields {
  switch (type) {
    case 'AWS::Lambda::Function':
      return functionProperties(functionName);
    case 'AWS::Logs::LogGroup':
      return {
        LogGroupName: substitute(`/aws/lambda/\${AWS::StackName}-${functionName}`),
        RetentionInDays: ref('LogRetentionDays'),
        KmsKeyId: whether('UsesLogsKey', ref('LogsKeyArn')),
      };
    case 'AWS::Lambda::LayerVersion':
      return { LayerName: substitute('${AWS::StackName}-allocator') };
    default:
      return {};
  }
}

function functionProperties(name: string): Fields {
  const isRepair = name.endsWith('-repair');
  return {
    FunctionName: substitute(`\${AWS::StackName}-${name}`),
    MemorySize: ref(isRepair ? 'RepairMemory' : 'LoopMemory'),
    VpcConfig: whether('UsesVpc', {
      SubnetIds: { 'Fn::Split': [',', ref('VpcSubnetIds')] },
      SecurityGroupIds: { 'Fn::Split': [',', ref('VpcSecurityGroupIds')] },
      Ipv6AllowedForDualStack: ref('VpcIpv6'),
    }),
    Environment: { Variables: { ...COMMON_VARIABLES, ...ownVariables(name) } },
    ...(name === 'admission' && {
      ReservedConcurrentExecutions: whether('ReservesAdmission', ref('AdmissionConcurrency')),
    }),
  };
}

const COMMON_VARIABLES: Fields = {
  TABLE_NAME,
  STACK,
  // The reporter of events: the same for every function, or each would begin series of its own.
  REPORTING_INSTANCE: STACK,
  CLUSTERS_PER_TICK: ref('ClustersPerTick'),
  ASSUME_ROLE_EXTERNAL_ID: ref('ExternalId'),
  // Of two stacks in one account, each has its own metrics.
  POWERTOOLS_SERVICE_NAME: STACK,
  POWERTOOLS_LOG_LEVEL: ref('LogLevel'),
  NODE_OPTIONS: '--enable-source-maps',
};

function ownVariables(name: string): Fields {
  const loop = LOOPS.find((one) => one === name);
  if (loop !== undefined) return { TICK_QUEUE_URL: ref(queueOf(loop)) };
  if (name === 'doctor') {
    return {
      TICK_QUEUE_URLS: { 'Fn::Join': [',', LOOPS.map((one) => ref(queueOf(one)))] },
      TICK_CONCURRENCY: ref('TickConcurrency'),
    };
  }
  if (name !== 'admission') return {};
  return {
    ADMISSION_ON_FAILURE: ref('AdmissionOnFailure'),
    ADMISSION_DEADLINE_SECONDS: ref('AdmissionDeadlineSeconds'),
    ADMISSION_TOKEN_STORE: ref('AdmissionTokenStore'),
    SECRETS_PREFIX: SECRETS_PREFIX,
  };
}
