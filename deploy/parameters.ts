import type { Fields } from './cloudformation.ts';

/** A parameter of a deployment. All but those of `npm run deploy` alone are parameters of the template. */
interface Parameter {
  readonly default: string;
  /** The whole value, as a regular expression of JavaScript and of CloudFormation. */
  readonly pattern: string;
  /** The valid values, as an imperative. */
  readonly fix: string;
  readonly description: string;
  /** Only for `npm run deploy`: with the template, CloudFormation's own options do the same. */
  readonly isOfToolAlone?: true;
}

const FLAG = { pattern: '^(true|false)$', fix: 'write true or false' };
const LOG_RETENTION_DAYS = '1|3|5|7|14|30|60|90|120|150|180|365|400|545|731|1096|1827|2192|2557|2922|3288|3653';

export const PARAMETERS = {
  table: {
    default: '',
    pattern: '^([a-zA-Z0-9_.-]{3,255})?$',
    fix: 'write the name of an existing table, not its ARN, or leave it out',
    description: 'An existing table to use unchanged. Empty: the stack creates a table of its own name.',
  },
  vpcSubnetIds: idsOf('subnet', 'Private subnets of the functions, with commas. Empty: no VPC.'),
  vpcSecurityGroupIds: idsOf('sg', 'Security groups of the functions, with commas. Needed with vpcSubnetIds.'),
  vpcIpv6: {
    default: 'false',
    ...FLAG,
    description: 'Outbound IPv6 from the subnets, which must be dual-stack.',
  },
  alarms: { default: 'true', ...FLAG, description: 'Create the alarms of docs/runbook.md.' },
  alarmTopicArn: arnOf('sns', 'The SNS topic that alarms notify.'),
  alarmSharePercent: {
    default: '5',
    pattern: '^([1-9]|[1-9][0-9]|100)$',
    fix: 'write a number from 1 to 100',
    description: 'The share of the clusters, or of the invocations of a function, that sets off an alarm.',
  },
  dashboard: { default: 'true', ...FLAG, description: 'Create the CloudWatch dashboard.' },
  runbook: {
    default: 'docs/runbook.md',
    pattern: '^\\S+$',
    fix: 'write the address of the page docs/runbook.md',
    description: 'The URL of your copy of docs/runbook.md, to which each alarm links.',
  },
  logRetentionDays: {
    default: '30',
    pattern: `^(${LOG_RETENTION_DAYS})$`,
    fix: `write a number of days that CloudWatch Logs accepts: ${LOG_RETENTION_DAYS.replaceAll('|', ', ')}`,
    description: 'How long log lines are kept, in days.',
  },
  logLevel: {
    default: 'INFO',
    pattern: '^(DEBUG|INFO|WARN|ERROR)$',
    fix: 'write DEBUG, INFO, WARN or ERROR',
    description: 'The least severe log lines that are written.',
  },
  logsKeyArn: arnOf('kms', 'The KMS key that encrypts the log groups. Its policy must allow CloudWatch Logs.'),
  loopMemory: memoryOf('256', 'the loops that are due every minute, and the functions that are invoked by hand'),
  repairMemory: memoryOf('512', 'the repair loops'),
  secretsPrefix: {
    default: '',
    pattern: '^([a-zA-Z0-9_.-][a-zA-Z0-9_/.-]*)?$',
    fix: 'write the prefix of the names of secrets, such as kube-bootstrap-controller/prod/, without a "/" before it',
    description: 'Prefix of the secrets and parameters that hold kubeconfigs. Empty: the name of the stack and "/".',
  },
  secretsRegion: {
    default: '',
    pattern: '^([*]|[a-z]{2}(-[a-z]+)+-[0-9])?$',
    fix: 'write a region, such as eu-west-1, * for all regions, or leave it out',
    description: 'The region of those secrets, if it is another one. A kubeconfig then names its secret by ARN.',
  },
  kmsKeyArn: arnOf('kms', 'The KMS key that encrypts those secrets.'),
  assumableRoleArns: {
    default: '',
    pattern: '^(arn:[a-zA-Z0-9-]+:iam::[0-9]{12}:role/[^,\\s]+(,arn:[a-zA-Z0-9-]+:iam::[0-9]{12}:role/[^,\\s]+)*)?$',
    fix: 'write ARNs of roles, with commas and no spaces, or leave it out',
    description: 'Roles that may be assumed to read kubeconfigs in other accounts.',
  },
  assumableOrgRole: {
    default: '',
    pattern: '^([a-zA-Z0-9_+=,.@/*?-]{1,512})?$',
    fix: 'write the path and name of a role, such as platform/kubeconfigs-*, or leave it out',
    description:
      'The path and name of roles that may be assumed for the same in all accounts of assumableOrgPaths. `*` stands for any text.',
  },
  assumableOrgPaths: {
    default: '',
    pattern: '^(o-[a-z0-9]{10,32}/[^,\\s]*(,o-[a-z0-9]{10,32}/[^,\\s]*)*)?$',
    fix: 'write paths of AWS Organizations, such as o-a1b2c3d4e5/* or o-a1b2c3d4e5/r-ab12/ou-ab12-11111111/*, with commas',
    description:
      'Where in AWS Organizations these accounts are, such as `o-a1b2c3d4e5/*`. Needed with assumableOrgRole.',
  },
  externalId: {
    default: '',
    pattern: '^([a-zA-Z0-9_+=,.@:/-]{2,1224})?$',
    fix: 'write 2 to 1224 letters, digits or _+=,.@:/-, or leave it out',
    description: 'The external ID that the trust policies of all these roles require.',
  },
  webIdentityServers: {
    default: '',
    pattern: '^(https://[^,\\s]+(,https://[^,\\s]+)*)?$',
    fix: 'write the URLs of API servers, with commas and no spaces, or leave it out',
    description:
      'API servers for which the functions may request tokens from AWS STS: the `server` of each `kubeconfig.webIdentity`. `*` stands for any text.',
  },
  tableKeyArn: arnOf('kms', 'The KMS key that encrypts the table.'),
  permissionsBoundaryArn: arnOf('iam', 'The permissions boundary of every role.'),
  rolePath: {
    default: '/',
    pattern: '^/([!-~]+/)?$',
    fix: 'write a path that begins and ends with "/"',
    description: 'The IAM path of every role.',
  },
  tickConcurrency: {
    default: '10',
    pattern: '^([2-9]|[1-9][0-9]|[1-9][0-9][0-9]|1000)$',
    fix: 'write a number from 2 to 1000',
    description:
      'Ticks of one loop at the same time: 10, or a quarter of the clusters divided by clustersPerTick if that is more.',
  },
  clustersPerTick: {
    default: '16',
    pattern: '^([1-9]|1[0-6])$',
    fix: 'write a number from 1 to 16',
    description: 'Clusters that share a message and a process. 1 for tenants that may be hostile.',
  },
  admission: {
    default: 'off',
    pattern: '^(on|off)$',
    fix: 'write on or off',
    description: 'The admission webhook (docs/admission.md).',
  },
  admissionEndpoint: {
    default: 'functionUrl',
    pattern: '^(functionUrl|apiGateway)$',
    fix: 'write functionUrl or apiGateway',
    description:
      'How API servers reach the webhook. Some regions have no function URLs, and PrivateLink needs apiGateway.',
  },
  admissionVpcEndpointIds: {
    ...idsOf('vpce', 'VPC endpoints for execute-api, with commas: the API of apiGateway is then private.'),
  },
  admissionOnFailure: {
    default: 'refuse',
    pattern: '^(refuse|allow)$',
    fix: 'write refuse or allow',
    description: 'What happens to a Service when the table can give nothing.',
  },
  admissionDeadlineSeconds: {
    default: '8',
    pattern: '^([1-9]|1[0-9]|2[0-8])$',
    fix: 'write a number of seconds from 1 to 28',
    description: 'Below the timeoutSeconds of deploy/admission-webhook.yaml.',
  },
  admissionTokenStore: {
    default: 'secretsManager',
    pattern: '^(secretsManager|ssm)$',
    fix: 'write secretsManager or ssm',
    description: 'Where the tokens of the webhook are stored.',
  },
  admissionConcurrency: {
    default: 'none',
    pattern: '^(none|[1-9][0-9]{0,3})$',
    fix: 'write a number from 1 to 9999, or none',
    description: 'Reserved concurrency of the webhook. It needs an account limit of 100 more than the number.',
  },
  tags: {
    default: '',
    pattern: '^([^=,]+=[^,]*(,[^=,]+=[^,]*)*)?$',
    fix: 'write name=value, with commas between',
    description: 'Tags of the stack and of everything in it.',
    isOfToolAlone: true,
  },
  deploymentBucket: {
    default: '',
    pattern: '^([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])?$',
    fix: 'write the name of an existing bucket, or leave it out',
    description: 'The bucket for the packages. Empty: the stack creates one.',
    isOfToolAlone: true,
  },
  deploymentRoleArn: { ...arnOf('iam', 'The role that CloudFormation assumes.'), isOfToolAlone: true },
  rollbackMinutes: {
    default: '0',
    // Repairs are due every three minutes, and their alarms need two or three periods.
    pattern: '^(0|1[0-9]|[2-9][0-9]|1[0-7][0-9]|180)$',
    fix: 'write 0, or a number of minutes from 10 to 180',
    description:
      'How long CloudFormation watches the alarm `release-failing` after an update, to roll it back. 0: it does not.',
    isOfToolAlone: true,
  },
} as const satisfies Readonly<Record<string, Parameter>>;

function idsOf(kind: string, description: string) {
  return {
    default: '',
    pattern: `^(${kind}-[a-zA-Z0-9]+(,${kind}-[a-zA-Z0-9]+)*)?$`,
    fix: `write ids with commas and no spaces: ${kind}-1111,${kind}-2222`,
    description,
  } as const;
}

function arnOf(service: string, description: string) {
  return {
    default: '',
    pattern: `^(arn:[a-zA-Z0-9-]+:${service}:.+)?$`,
    fix: `write an ARN, which begins with arn:aws:${service}:, or leave it out`,
    description,
  } as const;
}

function memoryOf(megabytes: string, functions: string) {
  return {
    default: megabytes,
    pattern: '^(12[89]|1[3-9][0-9]|[2-9][0-9]{2}|[1-9][0-9]{3}|10[01][0-9]{2}|102[0-3][0-9]|10240)$',
    fix: 'write a number of MB from 128 to 10240',
    description: `Memory of ${functions}, in MB.`,
  } as const;
}

const entries = Object.entries<Parameter>(PARAMETERS);

/** Returns the name in the template. A table is a resource there, so its parameter has another name. */
export function templateName(name: string): string {
  return name === 'table' ? 'TableName' : name.slice(0, 1).toUpperCase() + name.slice(1);
}

/**
 * Returns the parameters of the template. Their defaults are the values in force, so that a changed value is a changed
 * template, which osls does not skip.
 */
export function templateParameters(values: Deployment['values'] = {}): Fields {
  return Object.fromEntries(
    entries
      .filter(([, { isOfToolAlone }]) => !isOfToolAlone)
      .map(([name, { default: value, pattern, fix, description }]) => [
        templateName(name),
        {
          Type: 'String',
          Default: values[name] ?? value,
          AllowedPattern: pattern,
          ConstraintDescription: `${fix}.`,
          Description: description,
        },
      ]),
  );
}

export interface Deployment {
  /** Every parameter, and other values that were set. */
  readonly values: Readonly<Record<string, string>>;
  /** Parameters that the command line or the block of the stage sets. */
  readonly requested: ReadonlySet<string>;
}

type Block = Readonly<Record<string, string | number | boolean | null>>;

/** Merges `name=value` of the command line over the block of the stage, that over the block `default`, and the defaults. */
export function parametersInForce(
  blocks: Readonly<Record<string, Block>>,
  stage: string,
  fromCommandLine?: readonly string[] | null,
): Deployment {
  const pairs = (fromCommandLine ?? []).map((pair): [string, string] => {
    const at = pair.indexOf('=');
    return [pair.slice(0, at), pair.slice(at + 1)];
  });
  const requested = { ...setIn(blocks['default']), ...setIn(blocks[stage]), ...Object.fromEntries(pairs) };
  const defaults = Object.fromEntries(entries.map(([name, { default: value }]) => [name, value]));
  const ofStage = { secretsPrefix: `kube-bootstrap-controller/${stage}/` };
  return { values: { ...defaults, ...ofStage, ...requested }, requested: new Set(Object.keys(requested)) };
}

function setIn(block: Block = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(block).flatMap(([name, value]) => (value === null ? [] : [[name, String(value)]])),
  );
}

/** The longest name of a function has 45 characters besides the stage, and Lambda accepts 64. */
const STAGE = /^[a-zA-Z][a-zA-Z0-9-]{0,18}$/;

/** Returns the faults that CloudFormation does not check, one per line; `undefined` without a fault. */
export function parameterFaults(values: Deployment['values'], stage: string): string | undefined {
  const unknown = Object.keys(values).filter((name) => !Object.hasOwn(PARAMETERS, name));
  const faults = unknown.map((name) => `${name} is not a parameter; there are ${Object.keys(PARAMETERS).join(', ')}`);
  if (!STAGE.test(stage)) {
    faults.push(`stage ${stage}: write at most 19 letters, digits and hyphens, as names of functions have at most 64`);
  }
  return faults.length === 0 ? undefined : faults.join('\n');
}

/** Returns the tags of the stack; none without the parameter. */
export function stackTags({ tags = '' }: Deployment['values']): Readonly<Record<string, string>> {
  const pairs = tags.split(',').filter((tag) => tag !== '');
  return Object.fromEntries(pairs.map((tag) => tag.split(/=(.*)/s).slice(0, 2)));
}

export type StackParameters = Readonly<Record<string, string>>;

/** The next deployment: its template, and the parameters that the command line or the block of the stage sets. */
interface NextDeployment extends Pick<Deployment, 'requested'> {
  readonly Parameters: Readonly<Record<string, { readonly Default: string }>>;
}

/** Returns the values of a stack that a deployment would reset without naming them, by their names in the template. */
export function keptParameters(deployed: StackParameters, { Parameters, requested }: NextDeployment): StackParameters {
  const kept = entries.flatMap(([parameter]) => {
    const [name, before] = [templateName(parameter), deployed[templateName(parameter)]];
    const isReset = before !== undefined && name in Parameters && before !== Parameters[name]?.Default;
    return isReset && !requested.has(parameter) ? [[name, before]] : [];
  });
  return Object.fromEntries(kept);
}

/** Returns the table of docs/parameters.md. */
export function parameterTable(): string[] {
  const rows = entries.map(([name, { default: value, description }]) => {
    const shown = name === 'secretsPrefix' ? '`kube-bootstrap-controller/<stage>/`' : value && `\`${value}\``;
    return `| \`${name}\` | ${shown} | ${description} |`;
  });
  return ['| parameter | default | meaning |', '| --- | --- | --- |', ...rows];
}
