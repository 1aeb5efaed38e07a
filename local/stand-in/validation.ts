import { unfitForEndpoints } from '../../cli/spec/api-server-rules.ts';
import { NAME } from '../../lib/admission/service.ts';
import { parseAddress } from '../../lib/allocator/ip-address.ts';
import type { StoredObject } from './object-store.ts';
import { jsonListIn } from './requests.ts';
import { invalid, type ServedResource } from './resources.ts';

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

/** The fields that cannot change, by kind. */
const FIXED: Readonly<Record<string, readonly string[]>> = {
  EndpointSlice: ['addressType'],
  Event: ['note', 'reportingController', 'reportingInstance', 'reason', 'action', 'eventTime', 'regarding', 'type'],
};

/** Refuses an invalid object with 422, as a real API server does. Checks only the faults that writes of the loops can have. */
export function validate(resource: ServedResource, object: StoredObject, previous: StoredObject | undefined): void {
  const fault =
    nameFault(resource, object) ?? addressFault(object) ?? (previous && updateFault(resource, object, previous));
  if (fault !== undefined) throw invalid(resource, object.metadata.name, fault);
}

function nameFault(resource: ServedResource, { metadata }: StoredObject): string | undefined {
  const isLabel = resource.kind === 'Namespace' || resource.kind === 'Service';
  if (!metadata.name) return 'metadata.name: Required value: name or generateName is required';
  if ((isLabel ? NAME : SUBDOMAIN).test(metadata.name)) return undefined;
  const rule = isLabel ? 'a lowercase RFC 1123 label' : 'a lowercase RFC 1123 subdomain';
  return `metadata.name: Invalid value: ${JSON.stringify(metadata.name)}: ${rule} must consist of lower case alphanumeric characters or '-'`;
}

function addressFault(object: StoredObject): string | undefined {
  const inSubsets = jsonListIn(object['subsets']).flatMap(({ addresses, notReadyAddresses }) =>
    [...jsonListIn(addresses), ...jsonListIn(notReadyAddresses)].map(({ ip }) => ip),
  );
  const inSlice = jsonListIn(object['endpoints']).flatMap(({ addresses }) => addresses);
  for (const ip of [...inSubsets, ...inSlice].map(String)) {
    const address = parseAddress(ip);
    const unfit = address === undefined ? 'must be a valid IP address' : unfitForEndpoints(address, ip);
    if (unfit !== undefined) return `addresses: Invalid value: "${ip}": ${unfit}`;
  }
  return undefined;
}

function updateFault({ kind }: ServedResource, object: StoredObject, previous: StoredObject): string | undefined {
  const field = FIXED[kind]?.find((each) => JSON.stringify(object[each]) !== JSON.stringify(previous[each]));
  return field && `${field}: Invalid value: field is immutable`;
}
