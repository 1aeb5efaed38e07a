import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { kubeconfigSources } from '../lib/aws/read-kubeconfig.ts';
import type { AwsAccount } from '../lib/aws/sdk.ts';
import { kubeconfigLoader, type LoadKubeconfig } from '../lib/aws/stored-kubeconfig.ts';
import type { HealthyTargets } from '../lib/aws/target-group.ts';
import { createEnvironment } from '../lib/runtime/cluster-connections.ts';
import { DispatchError, type StartDeadline, startDeadline } from '../lib/runtime/deadline.ts';
import { dynamoDbStore } from '../lib/table/dynamodb/dynamodb-table.ts';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import type { TelemetryFactory } from '../lib/telemetry/telemetry.ts';

export const LOCAL_TABLE = 'kube-bootstrap-controller';

export interface LocalEnvironmentOptions {
  readonly client: DynamoDBClient;
  readonly loadKubeconfig: LoadKubeconfig;
  readonly telemetry: TelemetryFactory;
  /** Aborts when every running pass must end. The results of these passes can still be saved. Default: never. */
  readonly end?: AbortSignal;
}

export function localEnvironment({ client, loadKubeconfig, telemetry, end }: LocalEnvironmentOptions) {
  return createEnvironment({
    loadKubeconfig,
    telemetry,
    ...(end !== undefined && { startDeadline: endingWith(end) }),
    reportingInstance: 'local',
    healthyTargets: targetGroups({}),
    table: dynamoDbStore(client, LOCAL_TABLE, Date.now).table,
  });
}

/** @param deadline the signal that ends the table's requests. By default, the requests have no deadline */
export function localTable(client: DynamoDBClient, deadline = new AbortController().signal): KeyValueTable {
  return dynamoDbStore(client, LOCAL_TABLE, Date.now).table(deadline);
}

/** Returns a function that starts deadlines. `end` aborts them, except deadlines that start after `end` to save results. */
export function endingWith(end: AbortSignal): StartDeadline {
  return (ms) => {
    const { signal, cancel } = startDeadline(ms);
    return { signal: end.aborted ? signal : AbortSignal.any([signal, end]), cancel };
  };
}

/** The time for which running passes may continue after the end was requested. */
export const ENDING_MS = 5_000;

/** Returns a signal that aborts {@link ENDING_MS} after `ended` aborts. */
export function givenUpAfter(ended: AbortSignal): AbortSignal {
  const controller = new AbortController();
  const message = 'The process ended before the pass did; the next start reads everything again.';
  const giveUp = () => controller.abort(new DispatchError('DeadlineExceeded', message));
  ended.addEventListener('abort', () => setTimeout(giveUp, ENDING_MS).unref(), { once: true });
  return controller.signal;
}

/**
 * Returns a loader that calls `loadKubeconfig` for the cluster `name`. For any other cluster, it loads the kubeconfig of the spec,
 * relative to the working directory and without credential plugins, because another writer might have registered that cluster.
 */
export function kubeconfigOfEach(name: string, loadKubeconfig: LoadKubeconfig): LoadKubeconfig {
  const ofOthers = kubeconfigLoader('.', kubeconfigSources());
  return (spec, signal) => (spec.name === name ? loadKubeconfig(spec, signal) : ofOthers(spec, signal));
}

/** Returns a reader of target groups. The SDK for load balancers is loaded only when a spec contains a target group. */
export function targetGroups(account: AwsAccount): HealthyTargets {
  let loaded: Promise<HealthyTargets> | undefined;
  return async (arn, signal) => {
    loaded ??= import('../lib/aws/target-group.ts').then(({ targetGroupReader }) => targetGroupReader(account));
    return (await loaded)(arn, signal);
  };
}
