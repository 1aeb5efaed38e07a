import type { Finding } from '../cluster/finding.ts';
import { type ContestState, type ContestVerdict, judgeContest, twoOwners, versionsOf } from './contested-writes.ts';
import { foreignSlice, noLiveLease, removalLines } from './endpoint-findings.ts';
import { endpointPorts } from './kubernetes-service.ts';
import {
  addressesIn,
  type EndpointPort,
  type EndpointSliceObject,
  type EndpointsObject,
  type PublishedObjects,
  portText,
  sameJson,
} from './objects.ts';
import type { FamilyServers } from './published-servers.ts';
import { addMasters, leaseEndpoints, onlySubset, removeMasters } from './reconcilers.ts';
import { isOwnSecondSlice, type SliceWrite, secondSlice, sliceFromEndpoints, sliceWrites } from './slices.ts';

export type FamilyObservation = Pick<FamilyServers, 'spec' | 'family' | 'objects' | 'live' | 'excluded'>;

/** `mirror` makes the slice `object` mirror the Endpoints as the write before it left them. */
export type PlannedWrite =
  | SliceWrite
  | { readonly verb: 'create' | 'update'; readonly object: EndpointsObject }
  | { readonly verb: 'mirror'; readonly object: EndpointSliceObject | undefined; readonly prune: boolean };

/**
 * The writes of the Endpoints and their slice, or of all other slices. Each of the two groups has one contest with
 * another writer.
 */
export interface Publication {
  readonly writes: readonly PlannedWrite[];
  /** The objects of the family as they were read. */
  readonly objects: PublishedObjects;
  /** Each address that the writes remove, with the reason. */
  readonly removals: readonly string[];
  /** Absent: there is no second family, and nothing is pruned. */
  readonly verdict: ContestVerdict | undefined;
  readonly findings: readonly Finding[];
}

/** Decides the Endpoints and their slice. Without a live address they stay unchanged. */
export function endpointsPublication(servers: FamilyServers, before: ContestState): Publication {
  if (servers.live.length > 0) return publicationOf(servers, before);
  const verdict = { state: before, afterWrite: before, withhold: false, twoOwners: false };
  return { writes: [], objects: {}, removals: [], verdict, findings: [noLiveLease(servers)] };
}

/**
 * Decides the slices besides the one that mirrors the Endpoints. Without a live address the slice of the second family stays
 * unchanged, as the Endpoints do: only a spec that no longer asks for both families deletes it.
 */
export function slicesPublication(
  slices: readonly EndpointSliceObject[],
  primary: FamilyServers,
  second: FamilyServers | undefined,
  before: ContestState,
): Publication {
  const { prune } = primary.spec.endpoints;
  const foreign = slices.filter((slice) => foreignSlice(slice).length > 0);
  const pruned = prune ? foreign.filter((slice) => isPrunable(slice, primary, second)) : [];
  const publication = publicationOf(second ?? { ...primary, objects: {}, live: [], excluded: [] }, before, pruned);
  const wanted = second?.refs.EndpointSlice.name;
  const unwanted = slices.filter((slice) => isOwnSecondSlice(slice) && slice.metadata.name !== wanted);
  const isJudged = prune === true || second !== undefined;
  const kept = publication.verdict?.withhold ? foreign : foreign.filter((slice) => !pruned.includes(slice));
  return {
    ...publication,
    writes: [...publication.writes, ...unwanted.map(deletion)],
    verdict: isJudged ? publication.verdict : undefined,
    findings: [
      ...kept.flatMap(foreignSlice),
      ...(second !== undefined && second.live.length === 0 ? [noLiveLease(second, second.family)] : []),
      ...publication.findings,
    ],
  };
}

/** Whether to delete a foreign slice: not one of a family that is to be published and has no live address. */
function isPrunable(
  { metadata, addressType }: EndpointSliceObject,
  ...families: readonly (FamilyServers | undefined)[]
): boolean {
  const servers = families.filter((family) => family !== undefined);
  const isOurs = servers.some(({ objects }) => objects.EndpointSlice?.metadata.name === metadata.name);
  return !isOurs && !servers.some(({ family, live }) => family === addressType && live.length === 0);
}

/** Decides whether the difference of the found objects is the change of another writer, and what to write. */
function publicationOf(
  servers: FamilyServers,
  before: ContestState,
  pruned: readonly EndpointSliceObject[] = [],
): Publication {
  const { spec, nowMs, live, objects } = servers;
  const planned = live.length === 0 ? [] : planWrites(servers);
  const found = [...Object.values(objects), ...pruned];
  const verdict = judgeContest(before, {
    wanted: JSON.stringify([live, endpointPorts(spec)]),
    differs: planned.length + pruned.length > 0,
    // A foreign slice is always the change of another writer.
    isForeign: pruned.length > 0,
    versions: versionsOf(found),
    urgent: planned.length > 0 && isHarmful(servers),
    nowMs,
    intervalMs: spec.intervalSeconds['kubernetes-service'] * 1000,
  });
  const writes = verdict.withhold ? [] : [...planned, ...pruned.map(deletion)];
  const findings = verdict.twoOwners ? [twoOwners(found, verdict)] : [];
  return { writes, objects, removals: removalLines(servers, removedBy(writes, objects)), verdict, findings };
}

function deletion(object: EndpointSliceObject) {
  return { verb: 'delete', object } as const;
}

/** Returns the addresses that the writes remove from the first object of a family. */
function removedBy(writes: readonly PlannedWrite[], objects: PublishedObjects): string[] {
  const [kind, before] = Object.entries(objects)[0] ?? [];
  const write = writes.find(({ verb, object }) => (verb === 'create' || verb === 'update') && object?.kind === kind);
  if (write === undefined) return [];
  const isLeft = new Set(addressesIn(write.object));
  return [...new Set(addressesIn(before))].filter((address) => !isLeft.has(address));
}

/** Returns the writes after which the objects of a family publish the live addresses, in their order. */
export function planWrites(observation: FamilyObservation): readonly PlannedWrite[] {
  const { spec, family, objects, live } = observation;
  const { Endpoints: current, EndpointSlice: slice } = objects;
  if (!('Endpoints' in objects)) return sliceWrites(secondSlice(spec, family, live), slice);
  const { prune = false } = spec.endpoints;
  const endpoints = plannedEndpoints(observation);
  if (endpoints === undefined) return [];
  if (endpoints === current) return sliceWrites(sliceFromEndpoints(current), slice, prune);
  return [
    { verb: current === undefined ? 'create' : 'update', object: endpoints },
    { verb: 'mirror', object: slice, prune },
  ];
}

/** Whether the objects publish what clients must not see: no address, or an excluded one. Such a correction never waits. */
export function isHarmful({ objects, excluded }: Pick<FamilyObservation, 'objects' | 'excluded'>): boolean {
  const isExcluded = new Set(excluded);
  return Object.values(objects)
    .map(addressesIn)
    .some((addresses) => addresses.length === 0 || addresses.some((address) => isExcluded.has(address)));
}

/** Returns the same object if it is correct; undefined: missing Endpoints are not created without an address. */
function plannedEndpoints({ spec, objects, live, excluded }: FamilyObservation): EndpointsObject | undefined {
  const { Endpoints: current } = objects;
  const { reconciler, reconcilePorts, masterCount, prune } = spec.endpoints;
  if (current === undefined && live.length === 0) return undefined;
  const rules = { masterCount, reconcilePorts, ports: inFoundOrder(endpointPorts(spec), current) };
  const base = withReadyOnly(current, live, prune);
  if (reconciler !== 'master-count') return leaseEndpoints(base, live, rules);
  const isExcluded = new Set(excluded);
  const isAnyExcluded = addressesIn(current).some((ip) => isExcluded.has(ip));
  const without = isAnyExcluded ? (removeMasters(base, isExcluded) ?? base) : base;
  const endpoints = addMasters(without, live, rules);
  return sameJson(endpoints, current) ? current : endpoints;
}

/** Keeps the current order of ports, because some API servers sort them. */
function inFoundOrder(wanted: readonly EndpointPort[], current: EndpointsObject | undefined): readonly EndpointPort[] {
  const found = (current && onlySubset(current)?.ports) ?? [];
  const isFound = new Set(found.map(portText));
  return found.length === wanted.length && wanted.every((port) => isFound.has(portText(port))) ? found : wanted;
}

/**
 * Removes live addresses from those that another writer marked as not ready: repacking would keep them not ready forever.
 * @param prune removes all that are not ready
 */
function withReadyOnly(
  current: EndpointsObject | undefined,
  live: readonly string[],
  prune = false,
): EndpointsObject | undefined {
  const isLive = new Set(live);
  const calledNotReady = (current?.subsets ?? []).some(({ notReadyAddresses = [] }) =>
    notReadyAddresses.some(({ ip }) => prune || isLive.has(ip)),
  );
  if (current === undefined || !calledNotReady) return current;
  const subsets = (current.subsets ?? []).map((subset) => ({
    ...subset,
    notReadyAddresses: (subset.notReadyAddresses ?? []).filter(({ ip }) => !prune && !isLive.has(ip)),
  }));
  return { ...current, subsets };
}
