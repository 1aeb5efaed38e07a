import { HOLD_OWNER_LABEL } from '../cluster/hold.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { JsonItems } from './json-items.ts';
import type { JsonRecord } from './replies.ts';
import { isRecord } from './replies.ts';
import { OverBound, parseBoundedJson } from './reply-bounds.ts';
import type { ListMeta, ServiceListReader } from './service-list-reader.ts';
import { LONGEST_CLAIM_TEXT, MOST_CLUSTER_IPS, MOST_PORTS } from './service-list-reader.ts';

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

function list(value: unknown, where: string, most: number): readonly unknown[] {
  if (value === undefined || value === null) {
    return [];
  }
  if (!Array.isArray(value)) {
    throw wrong(where, 'list');
  }
  if (value.length > most) {
    throw new OverBound(`a Service with more than ${most} of ${where}`);
  }
  return value;
}

function text(value: unknown, where: string): string {
  if (value !== undefined && typeof value !== 'string') {
    throw wrong(where, 'text');
  }
  if (value !== undefined && value.length > LONGEST_CLAIM_TEXT) {
    throw new OverBound(`a Service with a ${where} of more than ${LONGEST_CLAIM_TEXT} characters`);
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
    clusterIPs: list(spec['clusterIPs'], 'spec.clusterIPs', MOST_CLUSTER_IPS).map((ip) => text(ip, 'a clusterIP')),
    ports: list(spec['ports'], 'spec.ports', MOST_PORTS).map((port) => {
      const fields = record(port, 'a port');
      return { protocol: text(fields['protocol'], 'protocol'), nodePort: whole(fields['nodePort'], 'nodePort') };
    }),
    healthCheckNodePort: whole(spec['healthCheckNodePort'], 'spec.healthCheckNodePort'),
    ...(holdOwner !== undefined && { holdOwner: text(holdOwner, `the label ${HOLD_OWNER_LABEL}`) }),
  };
}

/** A list of Services in JSON, which a server sends that has no protobuf. */
export class JsonServiceList implements ServiceListReader {
  readonly #items = new JsonItems();

  push(chunk: Uint8Array): ServiceClaim[] {
    return this.#items.push(chunk).map((item) => claimOf(parseBoundedJson(item)));
  }

  end(): ListMeta {
    const body = this.#items.end();
    if (!isRecord(body) || body['kind'] !== 'ServiceList' || body['apiVersion'] !== 'v1') {
      throw new MalformedServiceList('it is no v1 ServiceList, or not all of it');
    }
    const metadata = record(body['metadata'], 'metadata');
    return {
      resourceVersion: text(metadata['resourceVersion'], 'metadata.resourceVersion'),
      continueToken: text(metadata['continue'], 'metadata.continue'),
    };
  }
}
