import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import type { Finding } from '../cluster/finding.ts';
import { isActive, type Lease, withdrawnUntil } from '../cluster/lease.ts';
import { type ContestState, type ContestVerdict, judgeContest } from '../endpoints/contested-writes.ts';
import { isOwnSecondSlice, secondFamily, secondSlice, sliceRef } from '../endpoints/dual-stack.ts';
import { type NoLiveAddress, noLiveLease, twoOwners } from '../endpoints/endpoint-findings.ts';
import { type SliceWrite, sliceAddresses, sliceWrite } from '../endpoints/endpoint-slice.ts';
import { endpointPorts } from '../endpoints/kubernetes-service.ts';
import {
  type ExpectedAddress,
  excludedAddresses,
  outcomesOf,
  publishedAddresses,
} from '../endpoints/lease-decisions.ts';
import type { EndpointSliceObject } from '../endpoints/objects.ts';
import type { ProbeOutcome } from '../endpoints/probe-outcome.ts';
import { FIELD_MANAGER } from '../kubernetes/api-server-cluster.ts';

/** The part of the input of a pass that decides the slices. */
export interface SlicesWorld {
  readonly spec: ClusterSpec;
  readonly nowMs: number;
  readonly outcomes: ReadonlyMap<string, ProbeOutcome>;
  /** The slices of the Service, and the slices with our names. */
  readonly slices: readonly EndpointSliceObject[];
  /** The state of the slices besides the first after the last pass. */
  readonly slicesContest: ContestState;
}

/** What a pass does to the slices besides the one that mirrors the Endpoints. */
export interface SlicesPlan {
  readonly writes: readonly SliceWrite[];
  /** The slice of the second family as it was read. */
  readonly current?: EndpointSliceObject;
  /** The addresses of the second family. */
  readonly live: readonly string[];
  readonly wanted: string;
  /** Absent: there is no second family. */
  readonly verdict?: ContestVerdict;
  readonly findings: readonly Finding[];
}

/** The API servers of one family. */
export interface FamilyServers extends NoLiveAddress {
  /** The addresses to publish: none without an active lease. */
  readonly live: readonly string[];
  /** The addresses with a lease that must not be published. */
  readonly excluded: readonly string[];
}

export function serversOf(
  { spec, nowMs, outcomes }: SlicesWorld,
  known: { readonly leases: readonly Lease[]; readonly expected: readonly ExpectedAddress[] },
  isOf: (address: string) => boolean,
): FamilyServers {
  const leases = known.leases.filter(({ address }) => isOf(address));
  const live = leases.some((lease) => isActive(lease, nowMs)) ? publishedAddresses(leases, known.expected, nowMs) : [];
  const excluded = excludedAddresses(leases, live, spec.endpoints.reconciler, nowMs);
  const ends = leases.map((lease) => [lease.address, withdrawnUntil(lease, nowMs)] as const);
  const withdrawn = ends.flatMap(([address, ms]) =>
    ms === undefined ? [] : [[address, new Date(ms).toISOString()] as const],
  );
  return { cluster: spec.name, live, excluded, outcomes: outcomesOf(outcomes, isOf), withdrawn: new Map(withdrawn) };
}

/**
 * Decides the slice of the second family. Without a live address it stays unchanged, as the Endpoints do: only a spec that no
 * longer asks for both families deletes it.
 */
export function decideSlices(world: SlicesWorld, servers: FamilyServers | undefined): SlicesPlan {
  const { spec, slices, nowMs } = world;
  const family = secondFamily(spec);
  const name = family && sliceRef(family).name;
  const unwanted = slices.filter((slice) => isOwnSecondSlice(slice) && slice.metadata.name !== name);
  const deletes = unwanted.map((object) => ({ verb: 'delete', object }) as const);
  if (family === undefined || servers === undefined) {
    return { writes: deletes, live: [], wanted: '', findings: [] };
  }

  const current = slices.find(({ metadata }) => metadata.name === name);
  const { live, excluded } = servers;
  const isPublished = live.length > 0;
  const write = isPublished ? sliceWrite(secondSlice(spec, family, live), current) : undefined;
  const isExcluded = new Set(excluded);
  const published = sliceAddresses(current);
  const wanted = JSON.stringify([live, endpointPorts(spec)]);
  const verdict = judgeContest(world.slicesContest, {
    wanted,
    differs: write !== undefined,
    versions: [current?.metadata.resourceVersion ?? ''],
    urgent: published.length === 0 || published.some((address) => isExcluded.has(address)),
    nowMs,
    intervalMs: spec.intervalSeconds['kubernetes-service'] * 1000,
  });
  const writes = write === undefined || verdict.withhold ? [] : [write];
  const findings = [
    ...(isPublished ? [] : [noLiveLease(servers, family)]),
    ...(verdict.twoOwners ? [twoOwners([current], FIELD_MANAGER, verdict)] : []),
  ];
  return { writes: [...writes, ...deletes], ...(current && { current }), live, wanted, verdict, findings };
}
