import { DescribeTargetHealthCommand, ElasticLoadBalancingV2Client } from '@aws-sdk/client-elastic-load-balancing-v2';
import type { FoundAddresses } from '../kubernetes/cluster-port.ts';
import { badConfiguration, callFailure } from './call-failure.ts';
import { type AwsAccount, clientOptions, nameOfError } from './sdk.ts';

/** Returns the ids of a target group's healthy targets. With target type `ip`, the ids are addresses. Throws a `ClusterError`. */
export type HealthyTargets = (arn: string, signal: AbortSignal) => Promise<FoundAddresses>;

/** The states of targets to which a load balancer sends no requests. A target in any other state may be healthy. */
const NOT_HEALTHY: ReadonlySet<string> = new Set(['initial', 'unhealthy', 'unhealthy.draining', 'draining', 'unused']);

/** Reads target groups in the regions of their ARNs. The AWS SDK chooses the identity unless a profile is set. */
export function targetGroupReader({ profile }: Pick<AwsAccount, 'profile'> = {}): HealthyTargets {
  const clients = new Map<string, ElasticLoadBalancingV2Client>();
  return async (arn, abortSignal) => {
    const region = arn.split(':')[3] ?? '';
    const client = clients.get(region) ?? new ElasticLoadBalancingV2Client(clientOptions({ region, profile }));
    clients.set(region, client);
    const command = new DescribeTargetHealthCommand({ TargetGroupArn: arn });
    const { TargetHealthDescriptions: targets = [] } = await client
      .send(command, { abortSignal })
      .catch((error: unknown) => {
        throw failure(arn, region, error, abortSignal);
      });
    const states = targets.map(({ Target, TargetHealth }) => ({
      id: Target?.Id ?? [],
      state: TargetHealth?.State ?? '',
    }));
    const unread = states.filter(({ state }) => state !== 'healthy' && !NOT_HEALTHY.has(state)).length;
    return {
      addresses: states.flatMap(({ id, state }) => (state === 'healthy' ? id : [])),
      ...(unread > 0 && { unread: `the health of ${unread} targets is unavailable` }),
    };
  };
}

function failure(arn: string, region: string, error: unknown, signal: AbortSignal): Error {
  const call = `elasticloadbalancing:DescribeTargetHealth of ${arn}`;
  if (nameOfError(error) === 'TargetGroupNotFoundException') {
    return badConfiguration(`${call}: there is no such target group. Correct targetGroupArn in the spec.`);
  }
  const ifDenied = 'Allow it to the role of this function, or to your own identity';
  return callFailure({ call, service: 'elasticloadbalancing', region, ifDenied }, error, signal);
}
