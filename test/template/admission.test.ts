import { beforeAll, describe, expect, test } from '@jest/globals';
import { parameterFaults } from '../../deploy/check-parameters.ts';
import { packageService, type Resource, type Template } from './package-service.ts';

const ON = {
  admission: 'on',
  admissionOnFailure: 'allow',
  admissionDeadlineSeconds: '5',
  admissionTokenStore: 'ssm',
  secretsPrefix: 'clusters/',
};
const NETWORK = { vpcSubnetIds: 'subnet-1', vpcSecurityGroupIds: 'sg-1', kmsKeyArn: 'arn:aws:kms:eu-west-1:1:key/k' };

let off: Template;
let on: Template;
let inNetwork: Template;

beforeAll(async () => {
  const parameters = [{}, ON, { ...ON, ...NETWORK, admissionConcurrency: 'none' }];
  const packaged = await Promise.all(parameters.map((each) => packageService({ parameters: each })));
  [off, on, inNetwork] = packaged.map(({ template }) => template) as [Template, Template, Template];
}, 120_000);

function admissionIn({ Resources }: Template): Readonly<Record<string, Resource>> {
  return Object.fromEntries(Object.entries(Resources).filter(([id]) => id.startsWith('Admission')));
}

function actionsOf(template: Template): readonly string[] {
  const { Policies } = admissionIn(template)['AdmissionRole']?.Properties ?? { Policies: [] };
  const statements = Policies.flatMap((policy: Resource['Properties']) => policy.PolicyDocument.Statement);
  return statements.flatMap(({ Effect, Action }: Resource['Properties']) => (Effect === 'Allow' ? Action : []));
}

describe('the admission function', () => {
  test('is not there by default, nor is anything of it', () => {
    expect(admissionIn(off)).toEqual({});
    expect(JSON.stringify(off)).not.toContain('-admission');
  });

  test('has a URL that AWS lets everybody call, in both of the ways that it asks for', () => {
    const { AdmissionLambdaFunctionUrl: url, ...rest } = admissionIn(on);
    expect(url?.Properties).toMatchObject({ AuthType: 'NONE' });
    expect(url?.Properties).not.toHaveProperty('Cors');
    const permissions = Object.values(rest).filter(({ Type }) => Type === 'AWS::Lambda::Permission');
    expect(permissions.map(({ Properties }) => Properties)).toEqual([
      expect.objectContaining({ Action: 'lambda:InvokeFunctionUrl', Principal: '*', FunctionUrlAuthType: 'NONE' }),
      expect.objectContaining({ Action: 'lambda:InvokeFunction', Principal: '*', InvokedViaFunctionUrl: true }),
    ]);
  });

  test('is told what parameters say, and is bounded', () => {
    const { Properties } = admissionIn(on)['AdmissionLambdaFunction'] ?? {};
    expect(Properties.ReservedConcurrentExecutions).toBe(20);
    expect(Properties.Environment.Variables).toMatchObject({
      ADMISSION_ON_FAILURE: 'allow',
      ADMISSION_DEADLINE_SECONDS: '5',
      ADMISSION_TOKEN_STORE: 'ssm',
      SECRETS_PREFIX: 'clusters/',
    });
    expect(admissionIn(inNetwork)['AdmissionLambdaFunction']?.Properties).not.toHaveProperty(
      'ReservedConcurrentExecutions',
    );
  });

  test('may log, read and write the table, and read the tokens of clusters, and nothing else', () => {
    expect(actionsOf(on)).toEqual([
      'logs:CreateLogStream',
      'logs:PutLogEvents',
      'dynamodb:GetItem',
      'dynamodb:PutItem',
      'secretsmanager:GetSecretValue',
      'ssm:GetParameter',
    ]);
    const role = JSON.stringify(admissionIn(on)['AdmissionRole']);
    expect(role).toContain(':secret:clusters/admission/*');
    expect(role).toContain(':parameter/clusters/admission/*');
    expect(role).not.toContain('clusters/*');
    const writes = admissionIn(on)['AdmissionRole']?.Properties.Policies[1].PolicyDocument.Statement[1];
    expect(writes).toMatchObject({
      Action: ['dynamodb:PutItem'],
      Condition: { 'ForAllValues:StringNotLike': { 'dynamodb:LeadingKeys': '#*' } },
    });
  });

  test('is in the network that parameters name, and decrypts with their key', () => {
    expect(admissionIn(inNetwork)['AdmissionLambdaFunction']?.Properties.VpcConfig).toEqual({
      SubnetIds: { 'Fn::Split': [',', 'subnet-1'] },
      SecurityGroupIds: { 'Fn::Split': [',', 'sg-1'] },
    });
    expect(actionsOf(inNetwork)).toEqual(expect.arrayContaining(['kms:Decrypt', 'ec2:CreateNetworkInterface']));
    expect(admissionIn(on)['AdmissionLambdaFunction']?.Properties).not.toHaveProperty('VpcConfig');
  });
});

test.each([
  ['admission', 'true', 'write on or off'],
  ['admissionOnFailure', 'ignore', 'write refuse or allow'],
  ['admissionDeadlineSeconds', '30', 'from 1 to 28'],
  ['admissionTokenStore', 'vault', 'write secretsManager or ssm'],
  ['admissionConcurrency', '0', 'from 1 to 9999, or none'],
])('the parameter %s is not %s', (name, value, told) => {
  expect(parameterFaults({ [name]: value })).toContain(told);
});
