// Compares the start of a function with that of a module that imports the same clients and logger with the whole AWS SDK.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { httpByProperty } from '../../deploy/http-by-property.ts';
import { bundle, bundleFunctions } from '../../test/support/bundled-functions.ts';
import { type Figure, inTurn } from './figure.ts';

const LOGGER = [
  "export { Logger } from '@aws-lambda-powertools/logger';",
  "export { Metrics } from '@aws-lambda-powertools/metrics';",
];
const TABLE =
  "export { DynamoDBClient, GetItemCommand, PutItemCommand, QueryCommand } from '@aws-sdk/client-dynamodb';";
const CLIENTS = {
  allocate: [...LOGGER, TABLE],
  'kubernetes-service': [
    ...LOGGER,
    TABLE,
    "export { DescribeTargetHealthCommand, ElasticLoadBalancingV2Client } from '@aws-sdk/client-elastic-load-balancing-v2';",
    "export { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge';",
    "export { SecretsManagerClient, GetSecretValueCommand } from '@aws-sdk/client-secrets-manager';",
    "export { SSMClient, GetParameterCommand } from '@aws-sdk/client-ssm';",
    "export { SQSClient, GetQueueAttributesCommand, SendMessageBatchCommand } from '@aws-sdk/client-sqs';",
    "export { STSClient, GetWebIdentityTokenCommand } from '@aws-sdk/client-sts';",
  ],
} as const;

export async function start(folder: string, name: keyof typeof CLIENTS, rounds: number): Promise<Figure> {
  // The file must be in this repository, so that esbuild finds its imports.
  const clients = path.join(import.meta.dirname, '../../.cache', `clients-of-${name}.ts`);
  writeFileSync(clients, CLIENTS[name].join('\n'));
  await bundleFunctions(folder, [name]);
  await bundle(folder, [clients], [httpByProperty]);
  const cpuMs = (file: string) => () => {
    const script =
      'await import(process.argv[1]); console.log(Object.values(process.cpuUsage()).join(" ")); process.exit();';
    const printed = execFileSync(process.execPath, ['--input-type=module', '-e', script, path.join(folder, file)]);
    const [user = Number.NaN, system = Number.NaN] = printed.toString().split(' ').map(Number);
    return (user + system) / 1000;
  };
  const names = { what: `start of ${name}`, peer: 'import of its clients', unit: 'ms of CPU' };
  return inTurn(names, rounds, cpuMs(`functions/${name}.mjs`), cpuMs(`clients-of-${name}.mjs`));
}
