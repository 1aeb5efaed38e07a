import { canonicalAddress } from '../../lib/allocator/ip-address.ts';
import type { ClusterSpec } from '../../lib/cluster/cluster-spec.ts';
import type { KubernetesObject, ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import { ClusterError, type ClusterPort, type ObjectRef } from '../../lib/kubernetes/cluster-port.ts';
import { listAllServices } from '../../lib/kubernetes/service-list.ts';
import { nodePortsOf } from '../../lib/repair/node-ports.ts';
import { describeError } from '../../lib/telemetry/describe-error.ts';
import type { Cli } from '../cli.ts';
import { type ExitCode, exitCodeOf } from '../errors.ts';
import type { ConnectionOptions } from '../options.ts';
import type { ItemPlace } from './item-place.ts';

/** A list of 50,000 Services takes a few seconds. */
const LONGEST_MS = 30_000;
/** Of more Services than these the creation times are not read. */
const MOST_DETAILS = 20;

/** A Service that has an item, once for each claim. */
export interface Claim {
  /** `namespace/name`. */
  readonly service: string;
  readonly createdAtMs?: number;
}

/** The object that Kubernetes 1.33 and later keep for each cluster IP. */
export interface IpAddress {
  /** The Service that owns it: `namespace/name`. */
  readonly parent: string;
  readonly createdAtMs?: number;
}

export interface ItemClaims {
  readonly services: readonly Claim[];
  /** Absent: there is none, or it was not read. */
  readonly ipAddress?: IpAddress;
}

export interface ClaimsNotRead {
  readonly exitCode: ExitCode;
}

/** Reads which Services have each of the items, in the order of the places. Prints the reason if they cannot be read. */
export async function readClaims(
  cli: Cli,
  spec: ClusterSpec,
  places: readonly ItemPlace[],
  options: ConnectionOptions,
  details: boolean,
): Promise<readonly ItemClaims[] | ClaimsNotRead> {
  const { passEnvironment } = await import('../pass-environment.ts');
  const { environment, close } = await passEnvironment(cli, await cli.openTable(), options);
  const { signal, cancel } = environment.startDeadline(LONGEST_MS);
  const progress = cli.progress('listing Services');
  try {
    const warn = (text: string) => cli.output.say(`${spec.name}: ${text}`);
    const loop = places[0]?.loop ?? 'cluster-ip-repair';
    const { kubernetes } = await environment.connect(spec, { loop, signal, warn });
    const services = await listAllServices(kubernetes);
    const claims: ItemClaims[] = [];
    for (const place of places) {
      const own = services.flatMap((service) => claimsOf(service, place));
      claims.push(details ? await withDetails(kubernetes, place, own, warn) : { services: own });
    }
    return claims;
  } catch (error) {
    const exitCode = exitCodeOf(error);
    if (exitCode === undefined || cli.signal.aborted) throw error;
    progress.end();
    cli.output.say(`Cannot list Services: ${describeError(error).message}`);
    return { exitCode };
  } finally {
    progress.end();
    cancel();
    await close();
  }
}

function claimsOf(service: ServiceClaim, { kind, item }: ItemPlace): Claim[] {
  const claimed = kind === 'ip' ? service.clusterIPs.map(canonicalAddress) : nodePortsOf(service).map(String);
  return claimed.filter((claim) => claim === item).map(() => ({ service: `${service.namespace}/${service.name}` }));
}

async function withDetails(
  kubernetes: ClusterPort,
  { kind, item }: ItemPlace,
  claims: readonly Claim[],
  warn: (text: string) => void,
): Promise<ItemClaims> {
  const services: Claim[] = [];
  for (const [index, claim] of claims.entries()) {
    const [namespace = '', name = ''] = claim.service.split('/');
    const ref = { kind: 'Service', namespace, name } as const;
    const object = index < MOST_DETAILS ? await kubernetes.get(ref) : undefined;
    services.push({ ...claim, ...createdAt(object) });
  }
  const ipAddress =
    kind === 'ip' ? await readIpAddress(kubernetes, { kind: 'IPAddress', name: item }, warn) : undefined;
  return { services, ...(ipAddress && { ipAddress }) };
}

async function readIpAddress(
  kubernetes: ClusterPort,
  ref: ObjectRef,
  warn: (text: string) => void,
): Promise<IpAddress | undefined> {
  try {
    const object = await kubernetes.get<IpAddressObject>(ref);
    const { namespace, name } = object?.spec?.parentRef ?? {};
    return object && { parent: `${namespace}/${name}`, ...createdAt(object) };
  } catch (error) {
    if (!(error instanceof ClusterError) || error.code !== 'Forbidden') throw error;
    warn(`IPAddress ${ref.name} was not read: ${error.message}`);
    return undefined;
  }
}

interface IpAddressObject extends KubernetesObject {
  readonly spec?: { readonly parentRef?: { readonly namespace?: string; readonly name?: string } };
}

function createdAt(object: KubernetesObject | undefined): { readonly createdAtMs?: number } {
  const createdAtMs = Date.parse(object?.metadata.creationTimestamp ?? '');
  return Number.isNaN(createdAtMs) ? {} : { createdAtMs };
}

/** Describes how the IPAddress and the Services disagree; `undefined` if they agree. */
export function ipAddressFault({ services, ipAddress }: ItemClaims): string | undefined {
  if (ipAddress === undefined) return undefined;
  const { parent } = ipAddress;
  const own = services.find(({ service }) => service === parent);
  if (own === undefined) return `its IPAddress belongs to ${parent}, which does not have it`;
  const older = services.find(
    ({ createdAtMs }) => createdAtMs !== undefined && own.createdAtMs !== undefined && createdAtMs < own.createdAtMs,
  );
  return older && `its IPAddress belongs to ${parent}, although ${older.service} is older`;
}
