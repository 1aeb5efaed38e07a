import { DescribeTargetHealthCommand, ElasticLoadBalancingV2Client } from '@aws-sdk/client-elastic-load-balancing-v2';
import { badConfiguration, callFailure } from './call-failure.ts';
import { nameOfError } from './sdk.ts';
import { storeClientOptions } from './store-client.ts';

/**
 * Returns the ids of the healthy targets of a target group. With target type `ip`, the ids are addresses. Throws a
 * `ClusterError`.
 */
export type HealthyTargets = (arn: string, signal: AbortSignal) => Promise<readonly string[]>;

/** Reads target groups in the regions of their ARNs, with the identity of this process. */
export function targetGroupReader(): HealthyTargets {
  const clients = new Map<string, ElasticLoadBalancingV2Client>();
  return async (arn, abortSignal) => {
    const region = arn.split(':')[3] ?? '';
    const client = clients.get(region) ?? new ElasticLoadBalancingV2Client(storeClientOptions({ region }));
    clients.set(region, client);
    const command = new DescribeTargetHealthCommand({ TargetGroupArn: arn });
    const { TargetHealthDescriptions: targets = [] } = await client
      .send(command, { abortSignal })
      .catch((error: unknown) => {
        throw failure(arn, region, error, abortSignal);
      });
    return targets.flatMap(({ Target, TargetHealth }) => (TargetHealth?.State === 'healthy' ? (Target?.Id ?? []) : []));
  };
}

function failure(arn: string, region: string, error: unknown, signal: AbortSignal): Error {
  const call = `elasticloadbalancing:DescribeTargetHealth of ${arn}`;
  if (nameOfError(error) === 'TargetGroupNotFoundException') {
    return badConfiguration(`${call}: there is no such target group. Correct targetGroupArn in the spec.`);
  }
  const ifDenied = 'Allow it to the role of this function';
  return callFailure({ call, service: 'elasticloadbalancing', region, ifDenied }, error, signal);
}
