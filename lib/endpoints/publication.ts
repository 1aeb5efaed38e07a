import * as z from 'zod/mini';
import type { IPFamily } from '../allocator/ip-address.ts';
import type { Finding } from '../cluster/finding.ts';
import {
  addressesIn,
  type EndpointAddress,
  type EndpointPort,
  type EndpointSliceObject,
  type EndpointsObject,
  KUBERNETES_SERVICE,
  type PublishedObjects,
  portText,
  publishedFamilies,
  SERVICE_NAME_LABEL,
  sameJson,
} from '../cluster/published-objects.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';
import { type ContestState, type ContestVerdict, judgeContest, twoOwners, versionsOf } from './contested-writes.ts';
import { foreignOwner, foreignSlice, noLiveLease, removalLines } from './endpoint-findings.ts';
import { endpointPorts, httpsPort } from './kubernetes-service.ts';
import type { FamilyServers } from './published-servers.ts';
import { addMasters, leaseEndpoints, onlySubset, removeMasters } from './reconcilers.ts';
import { isOwnSecondSlice, type SliceWrite, sliceFromEndpoints, sliceOfFamily, sliceWrites } from './slices.ts';

export type FamilyObservation = Pick<FamilyServers, 'spec' | 'family' | 'objects' | 'live' | 'excluded'>;

/** A write of Endpoints or of a slice. `mirror`: the slice `object` becomes a mirror of the Endpoints of the previous write. */
export type PlannedWrite =
  | SliceWrite
  | { readonly verb: 'create' | 'update'; readonly object: EndpointsObject }
  | { readonly verb: 'mirror'; readonly object: EndpointSliceObject | undefined; readonly prune: boolean };

/** The writes of a group: the Endpoints and their slice, or all other slices. Each group has a contest of its own. */
export interface Publication {
  readonly writes: readonly PlannedWrite[];
  readonly objects: PublishedObjects;
  /** A line for each address that the writes remove, with the reason. */
  readonly removals: readonly string[];
  /** The addresses that an update adds. Empty if the object is created. */
  readonly added: readonly string[];
  /** The verdict about the contest. `slicesPublication` omits it if there is no second family and `prune` is not set. */
  readonly verdict: ContestVerdict | undefined;
  readonly findings: readonly Finding[];
}

/** Decides the writes of the Endpoints and their slice. If no address is live, both objects stay unchanged. */
export function endpointsPublication(servers: FamilyServers, before: ContestState): Publication {
  if (servers.live.length > 0) return publicationOf(servers, before);
  const verdict = { state: before, afterWrite: () => before, withhold: false, twoOwners: false };
  return { writes: [], objects: {}, removals: [], added: [], verdict, findings: [noLiveLease(servers)] };
}

/** Decides the writes of all slices except that of the Endpoints. A second family without a live address keeps its slice. */
export function slicesPublication(
  slices: readonly EndpointSliceObject[],
  primary: FamilyServers,
  second: FamilyServers | undefined,
  before: ContestState,
): Publication {
  const { prune } = primary.spec.endpoints;
  const servers = [primary, second].filter((family) => family !== undefined);
  const foreign = slices.filter((slice) => foreignOwner(slice) !== undefined);
  const removed = prune ? foreign.filter((slice) => isRemovable(slice, servers)) : [];
  const pruned = removed.filter((slice) => publisherOf(slice, servers) === undefined);
  const publication = publicationOf(second ?? { ...primary, objects: {}, live: [], excluded: [] }, before, pruned);
  const wanted = second?.refs.EndpointSlice.name;
  const unwanted = slices.filter((slice) => isOwnSecondSlice(slice) && slice.metadata.name !== wanted);
  const isJudged = prune === true || second !== undefined;
  const kept = publication.verdict?.withhold ? foreign : foreign.filter((slice) => !removed.includes(slice));
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

/**
 * Returns false if a foreign slice must stay: the published family whose slice needs its name, or else that of its addresses,
 * has no live address.
 */
function isRemovable(slice: EndpointSliceObject, servers: readonly FamilyServers[]): boolean {
  const publisher = publisherOf(slice, servers) ?? servers.find(({ family }) => family === slice.addressType);
  return publisher === undefined || publisher.live.length > 0;
}

/** Returns the family whose slice has the name of this slice. A pass replaces or updates a foreign slice of this name. */
function publisherOf({ metadata }: EndpointSliceObject, servers: readonly FamilyServers[]): FamilyServers | undefined {
  return servers.find(({ objects }) => objects.EndpointSlice?.metadata.name === metadata.name);
}

/** Decides what to write, and whether another writer changed the objects. */
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
    // A foreign slice is always a change by another writer.
    isForeign: pruned.length > 0,
    versions: versionsOf(found),
    urgent: planned.length > 0 && isHarmful(servers),
    nowMs,
    intervalMs: spec.intervalSeconds['kubernetes-service'] * 1000,
  });
  const writes = verdict.withhold ? [] : [...planned, ...pruned.map(deletion)];
  const findings = verdict.twoOwners ? [twoOwners(found, verdict)] : [];
  const { removed, added } = movedBy(writes, objects);
  return { writes, objects, removals: removalLines(servers, removed), added, verdict, findings };
}

/** Returns the addresses that a pass last decided to publish. */
export function addressesWanted({ wanted = '[[]]' }: ContestState): readonly string[] {
  // The text is not JSON if another version saved it.
  const [addresses] = wanted.startsWith('[[') ? (wantedShape.safeParse(JSON.parse(wanted)).data ?? [[]]) : [[]];
  return addresses;
}

const wantedShape = z.readonly(z.tuple([z.readonly(z.array(z.string()))], z.unknown()));

function deletion(object: EndpointSliceObject) {
  return { verb: 'delete', object } as const;
}

/** Returns the addresses that the writes remove and add in the Endpoints; if the family has no Endpoints, in the slice. */
function movedBy(writes: readonly PlannedWrite[], objects: PublishedObjects) {
  const [kind, before] = Object.entries(objects)[0] ?? [];
  const write = writes.find(({ verb, object }) => (verb === 'create' || verb === 'update') && object?.kind === kind);
  if (write === undefined || before === undefined) return { removed: [], added: [] };
  const [was, is] = [new Set(addressesIn(before)), new Set(addressesIn(write.object))];
  const removed = [...was].filter((address) => !is.has(address));
  return { removed, added: [...is].filter((address) => !was.has(address)) };
}

/** Returns the writes that make the objects of a family publish the live addresses, in the order in which to apply them. */
export function planWrites(observation: FamilyObservation): readonly PlannedWrite[] {
  const { spec, family, objects, live } = observation;
  const { Endpoints: current, EndpointSlice: slice } = objects;
  const isSliceRead = 'EndpointSlice' in objects;
  const { prune = false } = spec.endpoints;
  if (!('Endpoints' in objects)) {
    return isSliceRead && mayLackEndpoints(spec, family)
      ? sliceWrites(sliceOfFamily(spec, family, live), slice, prune)
      : [];
  }
  const endpoints = plannedEndpoints(observation);
  if (endpoints === undefined) return [];
  if (endpoints === current) return isSliceRead ? sliceWrites(sliceFromEndpoints(current), slice, prune) : [];
  const write = { verb: current === undefined ? 'create' : 'update', object: endpoints } as const;
  return isSliceRead ? [write, { verb: 'mirror', object: slice, prune }] : [write];
}

/** Returns whether a slice needs no Endpoints. With master-count, Endpoints decide which servers of the primary family stay. */
function mayLackEndpoints(spec: ClusterSpec, family: IPFamily): boolean {
  return spec.endpoints.reconciler !== 'master-count' || publishedFamilies(spec)[0].family !== family;
}

/** Returns true if an object has no usable endpoint, or an endpoint that must not be published. Passes correct this at once. */
export function isHarmful({ objects, excluded, spec, family }: Omit<FamilyObservation, 'live'>): boolean {
  const isExcluded = new Set(excluded);
  return Object.values(objects)
    .map((object) => addressesIn(object && usablePart(object, spec, family)))
    .some((addresses) => addresses.length === 0 || addresses.some((address) => isExcluded.has(address)));
}

/** Returns the part of the object that clients of the Service can use: the endpoints of this family with the https port. */
function usablePart(
  object: EndpointsObject | EndpointSliceObject,
  spec: ClusterSpec,
  family: IPFamily,
): EndpointsObject | EndpointSliceObject | undefined {
  const wanted = portText(httpsPort(spec));
  const hasPort = (ports: readonly EndpointPort[] | null | undefined) =>
    ports?.some(({ name = '', port, protocol = 'TCP' }) => portText({ name, port, protocol }) === wanted);
  if (!('addressType' in object)) {
    return { ...object, subsets: object.subsets?.filter(({ ports }) => hasPort(ports)) ?? [] };
  }
  const isRead =
    object.metadata.labels?.[SERVICE_NAME_LABEL] === KUBERNETES_SERVICE.name && object.addressType === family;
  return isRead && hasPort(object.ports) ? object : undefined;
}

/** Returns the desired Endpoints: the same object if it is correct, `undefined` if it is missing and no address is live. */
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

/** Returns the wanted ports. If the Endpoints have the same ports, keeps their order, because some API servers sort ports. */
function inFoundOrder(wanted: readonly EndpointPort[], current: EndpointsObject | undefined): readonly EndpointPort[] {
  const found = (current && onlySubset(current)?.ports) ?? [];
  const isFound = new Set(found.map(portText));
  return found.length === wanted.length && wanted.every((port) => isFound.has(portText(port))) ? found : wanted;
}

/** Removes live addresses, or with `prune` all addresses, from `notReadyAddresses`: repacking would keep them there forever. */
function withReadyOnly(
  current: EndpointsObject | undefined,
  live: readonly string[],
  prune = false,
): EndpointsObject | undefined {
  const isLive = new Set(live);
  const isRemoved = ({ ip }: EndpointAddress) => prune || isLive.has(ip);
  const subsets = current?.subsets ?? [];
  if (current === undefined || !subsets.some((subset) => subset.notReadyAddresses?.some(isRemoved))) return current;
  const withReady = subsets.map(({ notReadyAddresses = [], ...subset }) => {
    return { ...subset, notReadyAddresses: notReadyAddresses.filter((address) => !isRemoved(address)) };
  });
  return { ...current, subsets: withReady };
}
