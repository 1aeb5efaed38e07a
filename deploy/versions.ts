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

/** Functions with synchronous callers, who call an alias: an update of code, layer and settings takes effect in one step. */
export const ALIASED = ['allocate', 'admission'] as const;
type Aliased = (typeof ALIASED)[number];
/** Also in deploy/admission-endpoint.yml, deploy/policies and the docs. */
const ALIAS = 'live';

/**
 * A version keeps the function as it was when it was published, and CloudFormation publishes one only as a new resource:
 * under another logical id, which deploy/replaced-resources.ts derives from the code, or with another description.
 */
export function versions(): Resources {
  return Object.fromEntries(ALIASED.flatMap((name) => Object.entries(versionOf(name))));
}

/** Invocations may be on their way to the version before. Lambda deletes all versions with their function. */
const KEPT = { DeletionPolicy: 'Retain', UpdateReplacePolicy: 'Retain' };

function versionOf(name: Aliased): Resources {
  const id = logicalId(name);
  const of = { FunctionName: ref(`${id}LambdaFunction`) };
  const version = { ...of, Description: settingsOf(name) };
  const alias = { ...of, FunctionVersion: attribute(`${id}Version`, 'Version'), Name: ALIAS };
  return {
    [`${id}Version`]: { Type: 'AWS::Lambda::Version', ...KEPT, ...conditionOf(name), Properties: version },
    [`${id}Alias`]: { Type: 'AWS::Lambda::Alias', ...conditionOf(name), Properties: alias },
  };
}

/** The qualifier of what callers invoke, and what must exist before it can be named. */
export function qualifierOf(name: string): { readonly Qualifier: string; readonly DependsOn?: string } {
  const isAliased = ALIASED.some((one) => one === name);
  return isAliased ? { Qualifier: ALIAS, DependsOn: `${logicalId(name)}Alias` } : { Qualifier: '$LATEST' };
}

/**
 * What parameters set in a version, which a change of them must replace. At most 256 characters: ids lose what all
 * begin with. A value that a version does not have must not be here: Lambda publishes no version without a change.
 */
function settingsOf(name: Aliased): Fields {
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
