import { canonicalAddress, familyOf } from '../../lib/allocator/ip-address.ts';
import type { IPAddressRecord, ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import { ClusterError, type ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import { IP_ADDRESS_READER, listAllServices } from '../../lib/kubernetes/item-reader.ts';
import { listServiceCidrs } from '../../lib/kubernetes/service-cidrs.ts';
import { type Hold, withHold } from '../../lib/range/hold.ts';
import { HOLDS_SELECTOR, holdIn } from '../../lib/range/hold-ip-address.ts';
import { MANAGED_BY_API_SERVERS } from '../../lib/repair/address-faults.ts';
import { nodePortsOf } from '../../lib/repair/node-ports.ts';
import { withDeadline } from '../../lib/runtime/deadline.ts';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import { describeError } from '../../lib/telemetry/telemetry.ts';
import { defined } from '../../lib/util/values.ts';
import type { Cli } from '../cli.ts';
import { type ExitCode, exitCodeOf } from '../errors.ts';
import type { ConnectionOptions } from '../options.ts';
import type { ItemPlace } from './item-place.ts';

/** The time limit of the reads. A list of 50,000 Services takes a few seconds. */
const LONGEST_MS = 30_000;

export interface ServiceUse {
  /** `namespace/name`. */
  readonly service: string;
  readonly createdAtMs: number;
}

/** The object that Kubernetes 1.33 and later create for each cluster IP. */
export interface IpAddress {
  /** `namespace/name` of a Service, or another parent with its resource: `gateways.gateway.networking.k8s.io namespace/name`. */
  readonly parent: string;
  readonly isOfService: boolean;
  /** The manager of the object; absent if the API servers manage the object. */
  readonly managedBy?: string;
  readonly hasWrongLabels: boolean;
  readonly createdAtMs: number;
}

export interface ItemClaims {
  readonly services: readonly ServiceUse[];
  /** True if the cluster records allocations in IPAddresses, and the IPAddress of the item was looked up. */
  readonly isRecordRead?: boolean;
  /** The IPAddress of the item. Absent if it does not exist or was not read. */
  readonly ipAddress?: IpAddress;
  readonly hold?: Hold;
}

export interface ClaimsNotRead {
  readonly exitCode: ExitCode;
}

/**
 * Returns the Services that use each of `places`, in the order of `places`. With `details`, also returns the IPAddress of each
 * address. If the Services cannot be listed, prints an error.
 */
export function readClaims(
  cli: Cli,
  spec: ClusterSpec,
  places: readonly ItemPlace[],
  options: ConnectionOptions,
  details: boolean,
): Promise<readonly ItemClaims[] | ClaimsNotRead> {
  return readCluster(cli, spec, options, 'Services', async (kubernetes, warn) => {
    const services = await listAllServices(kubernetes);
    return Array.fromAsync(places, async (place): Promise<ItemClaims> => {
      const own = services.flatMap((service) => claimsOf(service, place));
      const record = details && place.kind === 'ip' ? await readRecord(kubernetes, spec, place.item, warn) : {};
      return { services: own, ...record };
    });
  });
}

/** Reads the holds on cluster IPs from the API server. Prints an error if the list fails. */
export function readHoldsOfCluster(
  cli: Cli,
  spec: ClusterSpec,
  options: ConnectionOptions,
): Promise<readonly Hold[] | ClaimsNotRead> {
  return readCluster(cli, spec, options, 'IPAddresses', async (kubernetes) => {
    const objects = await kubernetes.list('IPAddress', undefined, HOLDS_SELECTOR);
    let holds: readonly Hold[] = [];
    for (const hold of objects.flatMap((object) => holdIn(object) ?? [])) holds = withHold(holds, hold.items, hold);
    return holds;
  });
}

/** Returns the result of `read`. If `read` fails, prints the error, and returns the exit code for this error. */
async function readCluster<Result>(
  cli: Cli,
  spec: ClusterSpec,
  options: ConnectionOptions,
  what: string,
  read: (kubernetes: ClusterPort, warn: (text: string) => void) => Promise<Result>,
): Promise<Result | ClaimsNotRead> {
  const { passEnvironment } = await import('../pass-environment.ts');
  await using passes = await passEnvironment(cli, await cli.openTable(), options);
  const { environment } = passes;
  try {
    return await withDeadline(environment, LONGEST_MS, async (signal) => {
      const warn = (text: string) => cli.output.say(`${spec.name}: ${text}`);
      const { kubernetes } = await environment.connect(spec, { loop: 'cluster-ip-repair', signal, warn });
      return read(kubernetes, warn);
    });
  } catch (error) {
    const exitCode = exitCodeOf(error);
    if (exitCode === undefined || cli.signal.aborted) throw error;
    cli.output.say(`Cannot list ${what}: ${describeError(error).message}`);
    return { exitCode };
  }
}

function claimsOf(service: ServiceClaim, { kind, item }: ItemPlace): ServiceUse[] {
  const claimed = kind === 'ip' ? service.clusterIPs.map(canonicalAddress) : nodePortsOf(service).map(String);
  const claim = { service: `${service.namespace}/${service.name}`, createdAtMs: service.createdAtMs };
  return claimed.filter((text) => text === item).map(() => claim);
}

/** Reads the IPAddress of an address. Without the right to read it, prints a warning and returns nothing. */
async function readRecord(
  kubernetes: ClusterPort,
  { allocator }: ClusterSpec,
  name: string,
  warn: (text: string) => void,
): Promise<Omit<ItemClaims, 'services'>> {
  try {
    const object = await kubernetes.get({ kind: 'IPAddress', name });
    if (object !== undefined) {
      const hold = holdIn(object);
      return { isRecordRead: true, ipAddress: ipAddressOf(IP_ADDRESS_READER.fromJson(object)), ...defined({ hold }) };
    }
    const cidrs = allocator === 'apiserver' ? await listServiceCidrs(kubernetes) : undefined;
    return { isRecordRead: cidrs !== undefined && cidrs.length > 0 };
  } catch (error) {
    if (!(error instanceof ClusterError) || error.code !== 'Forbidden') throw error;
    warn(`IPAddress ${name} was not read: ${error.message}`);
    return {};
  }
}

export function ipAddressOf(record: IPAddressRecord): IpAddress {
  const { group, resource, namespace, name } = record.parent;
  const isOfService = group === '' && resource === 'services';
  const isManaged = record.managedBy === MANAGED_BY_API_SERVERS;
  const kind = isOfService ? '' : `${[resource, group].filter(Boolean).join('.')} `;
  return {
    parent: kind + [namespace, name].filter(Boolean).join('/'),
    isOfService,
    ...(!isManaged && { managedBy: record.managedBy }),
    hasWrongLabels: !isManaged || record.family !== familyOf(record.name),
    createdAtMs: record.createdAtMs,
  };
}

export function ipAddressFault({ services, ipAddress, isRecordRead }: ItemClaims): string | undefined {
  const [first] = services;
  if (ipAddress === undefined) {
    const isMissing = isRecordRead && first !== undefined;
    return isMissing ? `${first.service} has it without an IPAddress: it can be allocated a second time` : undefined;
  }
  const { parent, isOfService, managedBy } = ipAddress;
  if (!isOfService && managedBy !== undefined) {
    return first && `its IPAddress belongs to ${parent}, although ${first.service} has it`;
  }
  const own = services.find(({ service }) => service === parent);
  if (own === undefined) return `its IPAddress belongs to ${parent}, which does not have it`;
  const older = services.find(({ createdAtMs }) => createdAtMs < own.createdAtMs);
  if (older !== undefined) return `its IPAddress belongs to ${parent}, although ${older.service} is older`;
  return ipAddress.hasWrongLabels ? 'the labels of its IPAddress are not those of API servers' : undefined;
}
