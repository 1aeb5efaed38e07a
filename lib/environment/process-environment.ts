import { randomUUID } from 'node:crypto';
import { defaultEventBus } from '../aws/event-bus.ts';
import { kubeconfigSources } from '../aws/kubeconfig-sources.ts';
import { createSqsClient, sqsQueue, sqsQueueDepth } from '../aws/sqs-queue.ts';
import type { DoctorEnvironment } from '../doctor/line.ts';
import { CONCURRENT_PASSES } from '../runtime/budgets.ts';
import type { Environment } from '../runtime/environment.ts';
import { DispatchError } from '../runtime/errors.ts';
import type { Handler, LambdaContext } from '../runtime/invocation.ts';
import { isLambda, kubeconfigLoader } from '../runtime/load-kubeconfig.ts';
import { readPauseOfAll } from '../table/clusters.ts';
import { createDynamoClient } from '../table/dynamodb-client.ts';
import { dynamoDbTable } from '../table/dynamodb-table.ts';
import { serverClock } from '../table/server-clock.ts';
import { powertoolsTelemetry } from '../telemetry/powertools.ts';
import { createEnvironment } from './create-environment.ts';

type Variables = Readonly<Record<string, string | undefined>>;

/**
 * Makes a function's entry point of its handler. Its environment is made at its first invocation, which fails with a
 * `DispatchError` of code `BadEnvironment` where a variable is missing.
 */
export function deployed<Answer>(
  handler: Handler<Answer>,
): (event: unknown, context: LambdaContext) => Promise<Answer> {
  const environmentOf = once(() => environmentFrom(process.env));
  return async (event, context) => {
    const { awsRequestId } = context;
    return handler(event, {
      environment: environmentOf(),
      getRemainingTimeInMillis: () => context.getRemainingTimeInMillis(),
      ...(awsRequestId !== undefined && { awsRequestId }),
    });
  };
}

/**
 * Returns the environment of a function. `TABLE_NAME` names the table, `STACK` the stack that owns its clusters,
 * `REPORTING_INSTANCE` the reporter of events, `TICK_QUEUE_URL` this loop's queue if it has one, `CLUSTERS_PER_TICK`
 * how many clusters share a message (16); region, endpoint and credentials are those of the AWS SDK, the log level is
 * that of Powertools (`POWERTOOLS_LOG_LEVEL`). Kubeconfig files are read from the folder of the function's code.
 */
export function environmentFrom(variables: Variables): Environment {
  const tableName = required(variables, 'TABLE_NAME');
  const reportingInstance = required(variables, 'REPORTING_INSTANCE');
  const stack = required(variables, 'STACK');
  const queueUrl = variables['TICK_QUEUE_URL'];
  const folder = variables['LAMBDA_TASK_ROOT'] ?? process.cwd();
  const client = createDynamoClient();
  // The clock of a function's host may be minutes off: holds and leases end by the clock of the table, as for commands.
  const clock = serverClock(client, Date.now);
  const { nowMs, skewMs } = clock;
  const table = (deadline: AbortSignal) =>
    dynamoDbTable({ client, tableName, deadline, nowMs, newWriteId: randomUUID });
  const { environment } = createEnvironment({
    nowMs,
    skewMs,
    busyMs: () => performance.eventLoopUtilization().active,
    measureClock: async (signal) => {
      if (!clock.isMeasured()) await readPauseOfAll(table(signal));
    },
    loadKubeconfig: kubeconfigLoader(folder, kubeconfigSources(), { refuseLocal: isLambda(variables) }),
    telemetry: powertoolsTelemetry,
    reportingInstance,
    stack,
    ...(queueUrl !== undefined && queueUrl !== '' && { tickQueue: sqsQueue(sqsClientFrom(variables), queueUrl) }),
    eventBus: defaultEventBus(),
    clustersPerTick: Number(variables['CLUSTERS_PER_TICK'] ?? CONCURRENT_PASSES),
    table,
  });
  return environment;
}

function sqsClientFrom(variables: Variables): ReturnType<typeof createSqsClient> {
  const endpointIsSet = Boolean(variables['AWS_ENDPOINT_URL_SQS'] ?? variables['AWS_ENDPOINT_URL']);
  return createSqsClient({ endpointIsSet });
}

function once<Result>(make: () => Result): () => Result {
  let made: { readonly result: Result } | undefined;
  return () => {
    made ??= { result: make() };
    return made.result;
  };
}

function required(variables: Variables, name: string): string {
  const value = variables[name];
  if (value === undefined || value === '') {
    throw new DispatchError('BadEnvironment', `The environment variable ${name} is not set: serverless.yml sets it.`);
  }
  return value;
}

/**
 * Returns the environment of the doctor. `TICK_QUEUE_URLS` names the queues of the ticks, separated by commas;
 * `TICK_CONCURRENCY` is how many messages of a queue are processed at the same time.
 */
export function doctorEnvironmentFrom(variables: Variables): DoctorEnvironment {
  const folder = variables['LAMBDA_TASK_ROOT'] ?? process.cwd();
  const concurrency = Number(variables['TICK_CONCURRENCY']);
  return {
    loadKubeconfig: kubeconfigLoader(folder, kubeconfigSources(), { refuseLocal: isLambda(variables) }),
    queues: {
      urls: (variables['TICK_QUEUE_URLS'] ?? '').split(',').filter((url) => url !== ''),
      depth: sqsQueueDepth(sqsClientFrom(variables)),
      ...(concurrency > 0 && { concurrency }),
    },
  };
}
