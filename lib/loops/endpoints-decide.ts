import type { Finding } from '../cluster/finding.ts';
import type { LeaseChanges } from '../cluster/lease.ts';
import { EndpointsError, standingWithdrawals } from '../endpoints/endpoint-findings.ts';
import { planService, type ServiceWrite } from '../endpoints/kubernetes-service.ts';
import { endpointsPublication, type Publication, slicesPublication } from '../endpoints/publication.ts';
import { publishedServers } from '../endpoints/published-servers.ts';
import type { World } from './endpoints-gather.ts';

export interface EndpointsPlan {
  /** The pass has nothing to write, and publishing is not refused: it decides only once. */
  readonly isQuiet: boolean;
  readonly service: ServiceWrite | undefined;
  /** Leases of addresses that are published without one. */
  readonly remembered: LeaseChanges;
  readonly endpoints: Publication;
  readonly slices: Publication;
  readonly counts: Readonly<Record<string, number>>;
  readonly findings: readonly Finding[];
  readonly errors: readonly Error[];
}

/** Decides all writes of a pass. */
export function decide(world: World): EndpointsPlan {
  const { spec, nowMs } = world;
  const { primary, second, leases, addresses, remembered } = publishedServers(world);
  const endpoints = endpointsPublication(primary, world.contest);
  const slices = slicesPublication(world.slices, primary, second, world.slicesContest);
  const service = planService(spec, world.service);
  const refusals = endpoints.findings.filter(({ type }) => type === 'noLiveLease');
  const writes = endpoints.writes.length + slices.writes.length + remembered.size;
  const lateProbes = [...world.outcomes.values()].filter(({ late }) => late).length;
  const activeLeases = primary.live.length + (second?.live.length ?? 0);
  return {
    isQuiet: refusals.length === 0 && writes === 0 && service === undefined,
    ...{ service, remembered, endpoints, slices },
    counts: { addresses, activeLeases, ...(lateProbes > 0 && { lateProbes }) },
    findings: [
      ...world.findings,
      ...standingWithdrawals(spec.name, leases, nowMs),
      ...slices.findings,
      ...endpoints.findings,
    ],
    errors: refusals.map(({ message }) => new EndpointsError('NoLiveLease', message)),
  };
}
