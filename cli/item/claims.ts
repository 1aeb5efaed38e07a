import { canonicalAddress } from '../../lib/allocator/ip-address.ts';
import type { ClusterSpec } from '../../lib/cluster/cluster-spec.ts';
import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import { ClusterError, type ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import { ipAddressInJson, listAllServices } from '../../lib/kubernetes/item-readers.ts';
import { nodePortsOf } from '../../lib/repair/node-ports.ts';
import { describeError } from '../../lib/telemetry/telemetry.ts';
import type { Cli } from '../cli.ts';
import { type ExitCode, exitCodeOf } from '../errors.ts';
import type { ConnectionOptions } from '../options.ts';
import type { ItemPlace } from './item-place.ts';

/** A list of 50,000 Services takes a few seconds. */
const LONGEST_MS = 30_000;

/** A Service that has an item, once for each claim. */
export interface ServiceUse {
  /** `namespace/name`. */
  readonly service: string;
  readonly createdAtMs?: number;
}

/** The object that Kubernetes 1.33 and later create for each cluster IP. */
interface IpAddress {
  /** The object that owns it: `namespace/name` of a Service, or `gateways.gateway.networking.k8s.io namespace/name`. */
  readonly parent: string;
  readonly createdAtMs?: number;
}

export interface ItemClaims {
  readonly services: readonly ServiceUse[];
  /** Absent: there is none, or it was not read. */
  readonly ipAddress?: IpAddress;
}

/**
 * Reads which Services have each of the items, in the order of the places. Prints the reason if they cannot be read, and
 * returns an exit code.
 */
export async function readClaims(
  cli: Cli,
  spec: ClusterSpec,
  places: readonly ItemPlace[],
  options: ConnectionOptions,
  details: boolean,
): Promise<readonly ItemClaims[] | { readonly exitCode: ExitCode }> {
  const { passEnvironment } = await import('../pass-environment.ts');
  const { environment, close } = await passEnvironment(cli, await cli.openTable(), options);
  const { signal, cancel } = environment.startDeadline(LONGEST_MS);
  try {
    const warn = (text: string) => cli.output.say(`${spec.name}: ${text}`);
    const { kubernetes } = await environment.connect(spec, { loop: 'cluster-ip-repair', signal, warn });
    const services = await listAllServices(kubernetes);
    const claims: ItemClaims[] = [];
    for (const place of places) {
      const own = services.flatMap((service) => claimsOf(service, place));
      const ipAddress = details && place.kind === 'ip' ? await readIpAddress(kubernetes, place.item, warn) : undefined;
      claims.push({ services: own, ...(ipAddress && { ipAddress }) });
    }
    return claims;
  } catch (error) {
    const exitCode = exitCodeOf(error);
    if (exitCode === undefined || cli.signal.aborted) throw error;
    cli.output.say(`Cannot list Services: ${describeError(error).message}`);
    return { exitCode };
  } finally {
    cancel();
    await close();
  }
}

function claimsOf(service: ServiceClaim, { kind, item }: ItemPlace): ServiceUse[] {
  const claimed = kind === 'ip' ? service.clusterIPs.map(canonicalAddress) : nodePortsOf(service).map(String);
  const claim = { service: `${service.namespace}/${service.name}`, ...createdAt(service) };
  return claimed.filter((text) => text === item).map(() => claim);
}

/** Reads the IPAddress of an address. Without the right to it, Services alone are shown. */
async function readIpAddress(
  kubernetes: ClusterPort,
  name: string,
  warn: (text: string) => void,
): Promise<IpAddress | undefined> {
  try {
    const object = await kubernetes.get({ kind: 'IPAddress', name });
    if (object === undefined) return undefined;
    const record = ipAddressInJson(object);
    const { group, resource, namespace, name: owner } = record.parent;
    const path = [namespace, owner].filter((part) => part !== '').join('/');
    const isOfService = group === '' && resource === 'services';
    return { parent: isOfService ? path : `${resource}.${group} ${path}`, ...createdAt(record) };
  } catch (error) {
    if (!(error instanceof ClusterError) || error.code !== 'Forbidden') throw error;
    warn(`IPAddress ${name} was not read: ${error.message}`);
    return undefined;
  }
}

/** A list has 0 for an object without a time. */
function createdAt({ createdAtMs }: { readonly createdAtMs: number }): { readonly createdAtMs?: number } {
  return createdAtMs > 0 ? { createdAtMs } : {};
}
