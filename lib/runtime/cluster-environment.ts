import { kubeconfigSources } from '../aws/read-kubeconfig.ts';
import { createSqsClient, defaultEventBus, sqsQueue, sqsQueueDepth } from '../aws/send-batches.ts';
import { isLambda, kubeconfigLoader, type LoadKubeconfig } from '../aws/stored-kubeconfig.ts';
import { createEnvironment } from './cluster-connections.ts';
import type { DoctorEnvironment, Environment } from './environment.ts';
import { required, tableEnvironmentFrom, type Variables } from './process-environment.ts';

/** Returns the environment of a function that connects to clusters. Its variables are in serverless.yml. */
export function environmentFrom(variables: Variables): Environment {
  const queueUrl = variables['TICK_QUEUE_URL'];
  const clustersPerTick = variables['CLUSTERS_PER_TICK'];
  const { environment } = createEnvironment({
    ...tableEnvironmentFrom(variables),
    busyMs: () => performance.eventLoopUtilization().active,
    loadKubeconfig: kubeconfigsOf(variables),
    reportingInstance: required(variables, 'REPORTING_INSTANCE'),
    ...(queueUrl !== undefined && queueUrl !== '' && { tickQueue: sqsQueue(createSqsClient(variables), queueUrl) }),
    eventBus: defaultEventBus(),
    ...(clustersPerTick !== undefined && { clustersPerTick: Number(clustersPerTick) }),
  });
  return environment;
}

function kubeconfigsOf(variables: Variables): LoadKubeconfig {
  const folder = variables['LAMBDA_TASK_ROOT'] ?? process.cwd();
  return kubeconfigLoader(folder, kubeconfigSources(), { refuseLocal: isLambda(variables) });
}

export function doctorPartsFrom(variables: Variables): Omit<DoctorEnvironment, keyof Environment> {
  const concurrency = Number(variables['TICK_CONCURRENCY']);
  return {
    loadKubeconfig: kubeconfigsOf(variables),
    queues: {
      urls: (variables['TICK_QUEUE_URLS'] ?? '').split(',').filter((url) => url !== ''),
      depth: sqsQueueDepth(createSqsClient(variables)),
      ...(concurrency > 0 && { concurrency }),
    },
  };
}
