import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { dnsHostResolver, dnsLookup } from '../kubernetes/dns-host-resolver.ts';
import { loadKubeconfigFile } from '../kubernetes/kubeconfig.ts';
import { createDynamoClient } from '../table/dynamodb-client.ts';
import { dynamoDbTable } from '../table/dynamodb-table.ts';
import { powertoolsTelemetry } from '../telemetry/powertools.ts';
import { ClusterConnections } from './cluster-connections.ts';
import { startDeadline } from './deadline.ts';
import type { Environment } from './environment.ts';
import { DispatchError } from './errors.ts';

let ofThisProcess: Environment | undefined;

/** The environment of a deployed function, made at its first invocation. Throws a `DispatchError` of code `BadEnvironment`. */
export function processEnvironment(): Environment {
  ofThisProcess ??= environmentFrom(process.env);
  return ofThisProcess;
}

/**
 * `TABLE_NAME` names the table, `REPORTING_INSTANCE` the stack, which events are reported by. Region, endpoint and
 * credentials are the AWS SDK's business, the log level is that of Powertools (`POWERTOOLS_LOG_LEVEL`). Kubeconfig
 * files are looked for beside the function's code.
 */
export function environmentFrom(variables: Readonly<Record<string, string | undefined>>): Environment {
  const tableName = required(variables, 'TABLE_NAME');
  const reportingInstance = required(variables, 'REPORTING_INSTANCE');
  const folder = variables['LAMBDA_TASK_ROOT'] ?? process.cwd();
  const nowMs = Date.now;
  const client = createDynamoClient();
  const clusters = new ClusterConnections({
    nowMs,
    loadKubeconfig: ({ kubeconfig: { file, context } }) =>
      loadKubeconfigFile(path.resolve(folder, file), context === undefined ? {} : { context }),
  });
  return {
    nowMs,
    newPassId: randomUUID,
    startDeadline,
    telemetry: powertoolsTelemetry,
    reportingInstance,
    table: (deadline) => dynamoDbTable({ client, tableName, deadline, nowMs, newWriteId: randomUUID }),
    connect: (spec, options) => clusters.connect(spec, options),
    resolveHost: (signal) => dnsHostResolver(dnsLookup(signal)),
  };
}

function required(variables: Readonly<Record<string, string | undefined>>, name: string): string {
  const value = variables[name];
  if (value === undefined || value === '') {
    throw new DispatchError('BadEnvironment', `The environment variable ${name} is not set: serverless.yml sets it.`);
  }
  return value;
}
