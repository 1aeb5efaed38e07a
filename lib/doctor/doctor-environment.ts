import { isLambda, kubeconfigLoader, type LoadKubeconfig } from '../dispatch/load-kubeconfig.ts';
import { type QueueDepth, sqsQueueDepth } from '../queue/queue-depth.ts';
import { createSqsClient } from '../queue/sqs-client.ts';
import { kubeconfigReader } from '../secrets/read-kubeconfig.ts';

/** What the doctor needs besides the environment of every function. */
export interface DoctorEnvironment {
  /** Reads it anew each time: whoever has just corrected it wants to know. */
  readonly loadKubeconfig: LoadKubeconfig;
  /** Absent, as on a person's machine: which there are is not known, and none is looked at. */
  readonly queues?: { readonly urls: readonly string[]; readonly depth: QueueDepth };
}

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
