// Compares functions with their bare clients and requests: the start of a function, and warm ticks of kubernetes-service.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { httpByProperty } from '../../deploy/esbuild-plugins.ts';
import { startApiServers } from '../../local/stand-in/api-servers.ts';
import { kubeconfigOf } from '../../local/stand-in/identity.ts';
import { bundle, bundleFunctions } from '../../test/support/bundled-functions.ts';
import { IDENTITY, readyStandIn } from '../../test/support/stand-in.ts';
import { type Figure, linesOf } from './figure.ts';

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

const START = `await import(process.argv[1]);
const { user, system } = process.cpuUsage();
console.log((user + system) / 1000);
process.exit();`;

/** Measures the start of a function, and of a module that imports the same clients and logger with the whole AWS SDK. */
export async function start(folder: string, name: keyof typeof CLIENTS, rounds: number): Promise<Figure> {
  // The file must be in this repository, so that esbuild finds its imports.
  const clients = path.join(import.meta.dirname, '../../.cache', `clients-of-${name}.ts`);
  writeFileSync(clients, CLIENTS[name].join('\n'));
  await bundleFunctions(folder, [name]);
  await bundle(folder, [clients], [httpByProperty]);
  const cpuMs = async (file: string) =>
    Number(await linesOf(process.execPath, ['--input-type=module', '-e', START, path.join(folder, file)]));
  const [ours, others]: [number[], number[]] = [[], []];
  // Both are measured in turn, so that the load of the machine affects both.
  for (let round = 0; round < rounds; round += 1) {
    ours.push(await cpuMs(`functions/${name}.mjs`));
    others.push(await cpuMs(`clients-of-${name}.mjs`));
  }
  return { what: `start of ${name}`, peer: 'import of its clients', unit: 'ms of CPU', ours, others };
}

const ADDRESSES = ['203.0.113.10', '203.0.113.11', '203.0.113.12'];
/** The number of first passes that do not count: they open connections, write the endpoints, and run uncompiled code. */
const COLD = 20;

/** Measures warm ticks of kubernetes-service with three API servers on the loopback, and for comparison, their requests alone. */
export async function warmTick(folder: string, rounds: number): Promise<Figure> {
  await bundle(folder, ['tools/bench/tick-passes.ts']);
  const apiServers = await startApiServers(await readyStandIn(), IDENTITY, ADDRESSES);
  const urls = ADDRESSES.map((address) => apiServers.urlOf(address));
  const kubeconfig = path.join(folder, 'kubeconfig-of-ticks');
  writeFileSync(kubeconfig, kubeconfigOf('bench', urls[0] ?? '', IDENTITY));
  try {
    const args = [path.join(folder, 'tick-passes.mjs'), kubeconfig, String(COLD + rounds), ...urls];
    const warm = (await linesOf(process.execPath, args)).slice(COLD).map((line) => line.split(' ').map(Number));
    const column = (at: number) => warm.map((times) => times[at] ?? Number.NaN);
    const names = { what: 'a warm tick', peer: 'its requests alone', unit: 'ms of CPU' };
    return { ...names, ours: column(0), others: column(1) };
  } finally {
    await apiServers.close();
  }
}
