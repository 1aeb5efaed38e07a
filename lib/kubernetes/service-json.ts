import { HOLD_OWNER_LABEL } from '../cluster/hold.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import type { JsonRecord } from './replies.ts';
import { isRecord } from './replies.ts';
import type { ServicePage } from './service-protobuf.ts';

/** The JSON is not what a list of Services looks like. */
export class MalformedServiceList extends Error {
  override readonly name = 'MalformedServiceList';
}

function wrong(where: string, expected: string): MalformedServiceList {
  return new MalformedServiceList(`${where} is no ${expected}`);
}

function record(value: unknown, where: string): JsonRecord {
  if (value === undefined || value === null) {
    return {};
  }
  if (!isRecord(value)) {
    throw wrong(where, 'object');
  }
  return value;
}

function list(value: unknown, where: string): readonly unknown[] {
  if (value === undefined || value === null) {
    return [];
  }
  if (!Array.isArray(value)) {
    throw wrong(where, 'list');
  }
  return value;
}

function text(value: unknown, where: string): string {
  if (value !== undefined && typeof value !== 'string') {
    throw wrong(where, 'text');
  }
  return value ?? '';
}

function whole(value: unknown, where: string): number {
  if (value === undefined) {
    return 0;
  }
  if (typeof value !== 'number' || !Number.isInteger(value)) {
    throw wrong(where, 'whole number');
  }
  return value;
}

/** A field of the wrong type is an error, never a default: an address that is not read would pass for a free one. */
function claimOf(item: unknown): ServiceClaim {
  const service = record(item, 'an item');
  const metadata = record(service['metadata'], 'metadata');
  const spec = record(service['spec'], 'spec');
  const holdOwner = record(metadata['labels'], 'metadata.labels')[HOLD_OWNER_LABEL];
  return {
    name: text(metadata['name'], 'metadata.name'),
    namespace: text(metadata['namespace'], 'metadata.namespace'),
    uid: text(metadata['uid'], 'metadata.uid'),
    resourceVersion: text(metadata['resourceVersion'], 'metadata.resourceVersion'),
    type: text(spec['type'], 'spec.type'),
    clusterIP: text(spec['clusterIP'], 'spec.clusterIP'),
    clusterIPs: list(spec['clusterIPs'], 'spec.clusterIPs').map((ip) => text(ip, 'a clusterIP')),
    ports: list(spec['ports'], 'spec.ports').map((port) => {
      const fields = record(port, 'a port');
      return { protocol: text(fields['protocol'], 'protocol'), nodePort: whole(fields['nodePort'], 'nodePort') };
    }),
    healthCheckNodePort: whole(spec['healthCheckNodePort'], 'spec.healthCheckNodePort'),
    ...(holdOwner !== undefined && { holdOwner: text(holdOwner, `the label ${HOLD_OWNER_LABEL}`) }),
  };
}

/** `body` as parsed. Throws `MalformedServiceList`. */
export function serviceListFromJson(body: unknown): ServicePage {
  if (
    !isRecord(body) ||
    body['kind'] !== 'ServiceList' ||
    body['apiVersion'] !== 'v1' ||
    !Array.isArray(body['items'])
  ) {
    throw new MalformedServiceList('it is no v1 ServiceList, or not all of it');
  }
  const metadata = record(body['metadata'], 'metadata');
  return {
    services: body['items'].map(claimOf),
    resourceVersion: text(metadata['resourceVersion'], 'metadata.resourceVersion'),
    continueToken: text(metadata['continue'], 'metadata.continue'),
  };
}
