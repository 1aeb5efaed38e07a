import { LOOPS, type Loop, SCHEDULE_SECONDS } from '../lib/cluster/cluster-spec.ts';
import { attribute, logicalId, pascalCase, type Resources, ref } from './cloudformation.ts';

/** How long the function of a loop may run: its budget, the list of clusters and the record (lib/runtime/budgets.ts). */
const LOOP_TIMEOUT_SECONDS: Readonly<Record<Loop, number>> = {
  'system-namespaces': 50,
  'kubernetes-service': 55,
  'cluster-ip-repair': 170,
  'node-port-repair': 170,
};

/** A late tick does nothing: the next one is the retry. */
const RETRY_POLICY = { MaximumEventAgeInSeconds: 60, MaximumRetryAttempts: 2 };

export function queueOf(loop: Loop): string {
  return `${pascalCase(loop)}Queue`;
}

/** What invokes the functions of the loops: a schedule for each, and the queue of the ticks between two minutes. */
export function loopResources(): Resources {
  return Object.assign({}, ...LOOPS.map(resourcesOf));
}

function resourcesOf(loop: Loop): Resources {
  const id = pascalCase(loop);
  const functionArn = attribute(`${logicalId(loop)}LambdaFunction`, 'Arn');
  const hiddenSeconds = LOOP_TIMEOUT_SECONDS[loop] + 10;
  const minutes = Math.max(1, SCHEDULE_SECONDS[loop] / 60);
  return {
    /**
     * Without a name of its own, as SQS refuses one for 60 s after its queue was deleted. A message stays hidden for as
     * long as its function may run, and not much longer: that it is received again is the sign that its process ended. So
     * it is retained until then, with a minute of delay and a minute of waiting, although a tick is late long before.
     */
    [queueOf(loop)]: {
      Type: 'AWS::SQS::Queue',
      DeletionPolicy: 'Delete',
      UpdateReplacePolicy: 'Delete',
      Properties: {
        MessageRetentionPeriod: hiddenSeconds + 120,
        VisibilityTimeout: hiddenSeconds,
        SqsManagedSseEnabled: true,
      },
    },
    [`${id}Schedule`]: {
      Type: 'AWS::Events::Rule',
      Properties: {
        ScheduleExpression: `rate(${minutes} minute${minutes === 1 ? '' : 's'})`,
        State: 'ENABLED',
        Targets: [{ Id: `${loop}Schedule`, Arn: functionArn, RetryPolicy: RETRY_POLICY }],
      },
    },
    [`${id}SchedulePermission`]: {
      Type: 'AWS::Lambda::Permission',
      Properties: {
        FunctionName: functionArn,
        Action: 'lambda:InvokeFunction',
        Principal: 'events.amazonaws.com',
        SourceArn: attribute(`${id}Schedule`, 'Arn'),
      },
    },
    [`${id}Ticks`]: {
      Type: 'AWS::Lambda::EventSourceMapping',
      Properties: {
        FunctionName: functionArn,
        EventSourceArn: attribute(queueOf(loop), 'Arn'),
        BatchSize: 1,
        Enabled: true,
        ScalingConfig: { MaximumConcurrency: ref('TickConcurrency') },
      },
    },
  };
}
