import { familyOf } from '../allocator/ip-address.ts';
import {
  ADDRESS_MANAGED_BY_LABEL,
  FAMILY_LABEL,
  type IPAddressRecord,
  type KubernetesObject,
  type ServiceClaim,
} from '../cluster/kubernetes-objects.ts';
import { ClusterError, type ClusterPort } from '../kubernetes/cluster-port.ts';
import { type AddressFault, MANAGED_BY_API_SERVERS, serviceKey } from '../repair/address-faults.ts';

/** A fault that still exists after a second read of its IPAddress and Service. */
export interface Confirmed {
  readonly fault: AddressFault;
  readonly record?: IPAddressRecord;
  readonly service?: ServiceClaim;
}

/** Corrects a fault. Returns the change; `undefined` without a correction, after a conflict, or if writes are not allowed. */
export async function correct(
  kubernetes: ClusterPort,
  { fault, record, service }: Confirmed,
): Promise<string | undefined> {
  const { item, correction } = fault;
  const owner = service === undefined ? '' : ` for Service ${serviceKey(service)}`;
  switch (correction) {
    case 'none':
      return undefined;
    case 'create':
      return (await create(kubernetes, item, service)) ? `created IPAddress ${item}${owner}` : undefined;
    case 'replace': {
      // The reference is immutable, so the IPAddress must be created again. If a policy refuses the new IPAddress, this
      // first call throws before the old IPAddress is deleted. Otherwise the API server answers that the IPAddress
      // exists.
      const isCreated = await create(kubernetes, item, service);
      const isFree = !isCreated && record !== undefined && (await remove(kubernetes, record));
      const isReplaced = isCreated || (isFree && (await create(kubernetes, item, service)));
      return isReplaced ? `replaced IPAddress ${item}${owner}` : undefined;
    }
    case 'relabel':
      return record && (await relabel(kubernetes, record)) ? `corrected the labels of IPAddress ${item}` : undefined;
    case 'delete':
      return record && (await remove(kubernetes, record)) ? `deleted IPAddress ${item}` : undefined;
  }
}

/** Returns false if another writer, such as an API server, created the IPAddress first. The next pass checks it. */
async function create(kubernetes: ClusterPort, item: string, service: ServiceClaim | undefined): Promise<boolean> {
  if (service === undefined) return false;
  const { namespace, name } = service;
  const object = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'IPAddress',
    metadata: { name: item, labels: labelsOf(item) },
    spec: { parentRef: { group: '', resource: 'services', namespace, name } },
  };
  const result = await kubernetes.create<KubernetesObject>(object);
  if ('message' in result) throw new ClusterError('Rejected', result.message);
  return result.outcome === 'created';
}

async function remove(kubernetes: ClusterPort, { name, uid, resourceVersion }: IPAddressRecord): Promise<boolean> {
  const metadata = { name, uid, resourceVersion };
  return (await kubernetes.delete({ apiVersion: 'networking.k8s.io/v1', kind: 'IPAddress', metadata })) === 'deleted';
}

async function relabel(kubernetes: ClusterPort, { name, uid, resourceVersion }: IPAddressRecord): Promise<boolean> {
  const patch = { metadata: { uid, resourceVersion, labels: labelsOf(name) } };
  return (await kubernetes.mergePatch({ kind: 'IPAddress', name }, patch)).outcome === 'updated';
}

function labelsOf(item: string): Readonly<Record<string, string>> {
  return { [FAMILY_LABEL]: familyOf(item) ?? '', [ADDRESS_MANAGED_BY_LABEL]: MANAGED_BY_API_SERVERS };
}
