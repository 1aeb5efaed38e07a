import {
  attribute,
  conditionOf,
  type Fields,
  logicalId,
  type Resources,
  ref,
  SECRETS_PREFIX,
  substitute,
  TABLE_NAME,
  type Value,
  whether,
} from './cloudformation.ts';

/** The functions with synchronous callers. Callers use an alias, so that code, layer and settings change in one step. */
export const ALIASED: readonly string[] = ['allocate', 'admission'];
/** The name of the alias. deploy/admission-endpoint.yml, deploy/policies and the docs also contain this name. */
export const ALIAS = 'live';

/**
 * Returns a version and an alias for each function in `ALIASED`. A version never changes. CloudFormation publishes a new version
 * only for a new logical id, which deploy/replaced-resources.ts derives from the code, or for a new description.
 */
export function versions(): Resources {
  return Object.fromEntries(ALIASED.flatMap((name) => Object.entries(versionOf(name))));
}

/** CloudFormation keeps old versions: callers may invoke them during an update. Lambda deletes them with the function. */
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
  return { 'Fn::Join': [' ', [...settings, TABLE_NAME, VPC, ...(name === 'admission' ? OF_ADMISSION : [])]] };
}

const OF_ADMISSION: readonly Value[] = [
  ...['AdmissionOnFailure', 'AdmissionDeadlineSeconds', 'AdmissionTokenStore'].map(ref),
  SECRETS_PREFIX,
];

const VPC = whether(
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
