/** What a parameter of serverless.yml may be, and what to write when it is not. */
interface Rule {
  readonly of: RegExp;
  readonly fix: string;
}

const FLAG: Rule = { of: /^(true|false)$/, fix: 'write true or false' };

const RULES: Readonly<Record<string, Rule>> = {
  table: { of: /^[\w.-]{3,255}$/, fix: 'write the name of an existing table, not its ARN, or leave it out' },
  vpcSubnetIds: idsOf('subnet'),
  vpcSecurityGroupIds: idsOf('sg'),
  alarms: FLAG,
  alarmTopicArn: arnOf('sns'),
  dashboard: FLAG,
  logRetentionDays: {
    of: /^\d+$/,
    fix: 'write a number of days that CloudWatch knows: 1, 3, 5, 7, 14, 30, 60, 90, ...',
  },
  logLevel: { of: /^(DEBUG|INFO|WARN|ERROR)$/, fix: 'write DEBUG, INFO, WARN or ERROR' },
  clusterDimension: FLAG,
  secretsPrefix: {
    of: /^[\w.-][\w/.-]*$/,
    fix: 'write what the names of secrets begin with, such as kube-bootstrap-controller/, without a "/" before it',
  },
  kmsKeyArn: arnOf('kms'),
  assumableRoleArns: {
    of: /^$|^arn:[\w-]+:iam::\d{12}:role\/[^,\s]+(,arn:[\w-]+:iam::\d{12}:role\/[^,\s]+)*$/,
    fix: 'write ARNs of roles, with commas and no spaces, or leave it out',
  },
  tickConcurrency: { of: /^([2-9]|[1-9]\d|[1-9]\d\d|1000)$/, fix: 'write a number from 2 to 1000' },
  clustersPerTick: { of: /^([1-9]|1[0-6])$/, fix: 'write a number from 1 to 16' },
  admission: { of: /^(on|off)$/, fix: 'write on or off' },
  admissionOnFailure: { of: /^(refuse|allow)$/, fix: 'write refuse or allow' },
  admissionDeadlineSeconds: { of: /^([1-9]|1\d|2[0-8])$/, fix: 'write a number of seconds from 1 to 28' },
  admissionTokenStore: { of: /^(secretsManager|ssm)$/, fix: 'write secretsManager or ssm' },
  admissionConcurrency: { of: /^(none|[1-9]\d{0,3})$/, fix: 'write a number from 1 to 9999, or none' },
  runbook: { of: /^\S+$/, fix: 'write the address of the page docs/runbook.md' },
};

function arnOf(service: string): Rule {
  return {
    of: new RegExp(`^$|^arn:[\\w-]+:${service}:.+`),
    fix: `write an ARN, which begins with arn:aws:${service}:, or leave it out`,
  };
}

function idsOf(kind: string): Rule {
  return {
    of: new RegExp(`^$|^${kind}-\\w+(,${kind}-\\w+)*$`),
    fix: `write ids with commas and no spaces: ${kind}-1111,${kind}-2222`,
  };
}

type Block = Readonly<Record<string, string | number | boolean | null>>;
/** By name; one that is `null` in the file is not there. */
export type Parameters = Readonly<Record<string, string | number | boolean>>;

/** The parameters in force: `name=value` of the command line before the stage's block, that before the defaults. */
export function parametersInForce(
  blocks: Readonly<Record<string, Block>>,
  stage: string,
  fromCommandLine: readonly string[] = [],
): Parameters {
  const pairs = fromCommandLine.map((pair): [string, string] => {
    const at = pair.indexOf('=');
    return [pair.slice(0, at), pair.slice(at + 1)];
  });
  return { ...said(blocks['default']), ...said(blocks[stage]), ...Object.fromEntries(pairs) };
}

function said(block: Block = {}): Parameters {
  return Object.fromEntries(Object.entries(block).flatMap(([name, value]) => (value === null ? [] : [[name, value]])));
}

/** All that is wrong, a line each; `undefined` when nothing is. */
export function parameterFaults(parameters: Parameters): string | undefined {
  const faults = Object.entries(parameters).flatMap(([name, value]) => faultOf(name, value));
  if (isSaid(parameters['vpcSubnetIds']) !== isSaid(parameters['vpcSecurityGroupIds'])) {
    faults.push('vpcSubnetIds, vpcSecurityGroupIds: one is said without the other; write both, or neither');
  }
  if (faults.length === 0) return undefined;
  const title = `parameters: ${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}`;
  return [title, ...faults.map((line) => `  ${line}`)].join('\n');
}

function faultOf(name: string, value: Parameters[string]): string[] {
  const rule = RULES[name];
  if (rule === undefined) return [`${name}: is not a parameter; there are ${Object.keys(RULES).join(', ')}`];
  return rule.of.test(String(value)) ? [] : [`${name}: is ${JSON.stringify(value)}; ${rule.fix}`];
}

function isSaid(value: Parameters[string] | undefined): boolean {
  return value !== undefined && value !== '';
}
