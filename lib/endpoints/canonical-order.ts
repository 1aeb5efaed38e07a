import type { EndpointAddress, EndpointPort, EndpointSubset } from './objects.ts';

/**
 * The order in which the original leaves ports and subsets after repacking (`SortSubsets` of
 * `pkg/api/v1/endpoints/util.go`): by the 128 bit FNV-1a hash of each one's printed form.
 */
export function inCanonicalOrder<Part>(parts: readonly Part[], print: (part: Part) => string): Part[] {
  if (parts.length < 2) return [...parts];
  return parts
    .map((part) => ({ part, hash: fnv1a128(print(part)) }))
    .sort((one, other) => (one.hash < other.hash ? -1 : Number(one.hash > other.hash)))
    .map(({ part }) => part);
}

/** The printed forms are those of Go's spew (`%#v`, without pointer addresses). */
export function printPort(port: EndpointPort): string {
  return `(v1.EndpointPort)${portFields(port)}`;
}

export function printSubset(subset: EndpointSubset): string {
  return [
    `(v1.EndpointSubset){Addresses:${printList('v1.EndpointAddress', subset.addresses, addressFields)}`,
    `NotReadyAddresses:${printList('v1.EndpointAddress', subset.notReadyAddresses, addressFields)}`,
    `Ports:${printList('v1.EndpointPort', subset.ports, portFields)}}`,
  ].join(' ');
}

function printList<Part>(type: string, parts: readonly Part[] | undefined, print: (part: Part) => string): string {
  return `([]${type})${parts === undefined ? '<nil>' : `[${parts.map(print).join(' ')}]`}`;
}

function portFields({ name, port, protocol, appProtocol }: EndpointPort): string {
  const text = `Name:(string)${name ?? ''} Port:(int32)${port} Protocol:(v1.Protocol)${protocol ?? ''}`;
  return `{${text} AppProtocol:(*string)${appProtocol ?? '<nil>'}}`;
}

function addressFields({ ip, hostname, nodeName, targetRef }: EndpointAddress): string {
  const text = `IP:(string)${ip} Hostname:(string)${hostname ?? ''} NodeName:(*string)${nodeName ?? '<nil>'}`;
  return `{${text} TargetRef:(*v1.ObjectReference)${targetRef === undefined ? '<nil>' : referenceFields(targetRef)}}`;
}

function referenceFields(reference: NonNullable<EndpointAddress['targetRef']>): string {
  const text = (field: string) => String(reference[field] ?? '');
  return [
    `{Kind:(string)${text('kind')} Namespace:(string)${text('namespace')} Name:(string)${text('name')}`,
    `UID:(types.UID)${text('uid')} APIVersion:(string)${text('apiVersion')}`,
    `ResourceVersion:(string)${text('resourceVersion')} FieldPath:(string)${text('fieldPath')}}`,
  ].join(' ');
}

const FNV_OFFSET = 0x6c62272e07bb014262b821756295c58dn;
const FNV_PRIME = 0x0000000001000000000000000000013bn;

function fnv1a128(text: string): bigint {
  let hash = FNV_OFFSET;
  for (const byte of new TextEncoder().encode(text)) hash = BigInt.asUintN(128, (hash ^ BigInt(byte)) * FNV_PRIME);
  return hash;
}
