import { kubeconfigReader } from '../aws/read-kubeconfig.ts';
import { createSqsClient, sqsQueueDepth } from '../aws/sqs-queue.ts';
import type { DoctorEnvironment } from '../doctor/doctor-environment.ts';
import { isLambda, kubeconfigLoader } from '../runtime/load-kubeconfig.ts';

/** `TICK_QUEUE_URLS` names the queues of the ticks, with commas between; without it there are none. */
export function doctorEnvironmentFrom(variables: Readonly<Record<string, string | undefined>>): DoctorEnvironment {
  const folder = variables['LAMBDA_TASK_ROOT'] ?? process.cwd();
  const endpointIsSet = Boolean(variables['AWS_ENDPOINT_URL'] ?? variables['AWS_ENDPOINT_URL_SQS']);
  return {
    loadKubeconfig: kubeconfigLoader(folder, kubeconfigReader(), { refuseLocal: isLambda(variables) }),
    queues: {
      urls: (variables['TICK_QUEUE_URLS'] ?? '').split(',').filter((url) => url !== ''),
      depth: sqsQueueDepth(createSqsClient({ endpointIsSet })),
    },
  };
}
