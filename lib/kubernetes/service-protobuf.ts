import { HOLD_OWNER_LABEL } from '../cluster/hold.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { boundedText } from '../cluster/values.ts';
import {
  BYTES,
  type FieldPlace,
  fieldAt,
  MAGIC,
  MalformedProtobuf,
  ProtobufReader,
  readTypeMeta,
  requireMagic,
} from './protobuf.ts';
import { LARGEST_OBJECT_BYTES, LONGEST_CLAIM_TEXT, MOST_CLUSTER_IPS, MOST_PORTS, OverBound } from './reply-bounds.ts';

// Field numbers: k8s.io/api/core/v1/generated.proto, k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto and
// k8s.io/apimachinery/pkg/runtime/generated.proto.

const KIND = 'v1 ServiceList';
const TYPE_META = 1;
const RAW = 2;
const LIST_META = 1;
const ITEM = 2;

/** Where the reader is: before the magic bytes, in the `runtime.Unknown`, in the `ServiceList` that is its `raw`, or after that. */
type Place = 'start' | 'envelope' | 'list' | 'rest';

interface ListMeta {
  readonly resourceVersion: string;
  /** Empty when the list has all there is. */
  readonly continueToken: string;
}

/**
 * Reads a list of Services while it arrives. Bytes are kept until a field of the list is whole, as a Service is; fields of
 * other kinds are skipped. Each call throws `MalformedProtobuf` or `OverBound`.
 */
export class ProtobufServiceList {
  #place: Place = 'start';
  #kind = '';
  /** Bytes of the `ServiceList` that are still to come. */
  #left = 0;
  #meta: ListMeta = { resourceVersion: '', continueToken: '' };
  #services: ServiceClaim[] = [];
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  /** So many bytes must be there before reading can continue. */
  #needed = MAGIC.length;

  /** Returns the Services that end in this chunk. */
  push(chunk: Uint8Array): ServiceClaim[] {
    if (this.#place === 'rest') return [];
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    if (this.#waitingBytes < this.#needed) return [];

    const bytes = Buffer.concat(this.#waiting);
    let at = 0;
    for (let next = this.#step(bytes, at); next !== undefined; next = this.#step(bytes, at)) at = next;
    this.#waiting = [bytes.subarray(at)];
    this.#waitingBytes = bytes.length - at;
    const services = this.#services;
    this.#services = [];
    return services;
  }

  /** Throws unless the list came whole. */
  end(): ListMeta {
    if (this.#place === 'start') requireMagic(Buffer.concat(this.#waiting));
    if (this.#place !== 'rest' && this.#kind !== KIND && this.#waitingBytes === 0) throw otherKind(this.#kind);
    if (this.#place !== 'rest') throw new MalformedProtobuf('it is cut off');
    return this.#meta;
  }

  /** Where the next step begins; `undefined` when more bytes are needed first. */
  #step(bytes: Buffer, at: number): number | undefined {
    if (this.#place === 'rest') return undefined;
    if (this.#place !== 'start') return this.#field(bytes, at);
    if (bytes.length < MAGIC.length) return this.#wait(MAGIC.length);
    requireMagic(bytes);
    this.#place = 'envelope';
    return MAGIC.length;
  }

  #field(bytes: Buffer, at: number): number | undefined {
    const head = fieldAt(bytes, at);
    if (head === undefined) return this.#wait(bytes.length - at + 1);
    if (this.#place === 'envelope' && head.field === RAW && head.wireType === BYTES) return this.#enterList(head);
    const size = head.end - at;
    if (this.#place === 'list' && size > this.#left)
      throw new MalformedProtobuf('a field goes beyond the end of its list');
    if (size > LARGEST_OBJECT_BYTES) throw new OverBound('an item of more than 2 MiB');
    if (head.end > bytes.length) return this.#wait(size);
    const reader = new ProtobufReader(bytes, at, head.end);
    reader.fields((field) => {
      if (this.#place === 'list') this.#readList(reader, field, size);
      else if (field === TYPE_META) this.#kind = readTypeMeta(reader);
    });
    return head.end;
  }

  #wait(bytes: number): undefined {
    this.#needed = bytes;
  }

  #enterList({ start, end }: FieldPlace): number {
    if (this.#kind !== KIND) throw otherKind(this.#kind);
    this.#left = end - start;
    this.#place = this.#left === 0 ? 'rest' : 'list';
    return start;
  }

  #readList(reader: ProtobufReader, field: number, size: number): void {
    if (field === LIST_META) this.#meta = readListMeta(reader);
    else if (field === ITEM) this.#services.push(readService(reader));
    this.#left -= size;
    if (this.#left === 0) this.#place = 'rest';
  }
}

function otherKind(found: string): MalformedProtobuf {
  return new MalformedProtobuf(`it is no ${KIND}${found === '' ? '' : `, but ${boundedText(found)}`}`);
}

function readListMeta(reader: ProtobufReader): ListMeta {
  const meta = { resourceVersion: '', continueToken: '' };
  reader.message((field) => {
    if (field === 2) meta.resourceVersion = reader.text();
    else if (field === 3) meta.continueToken = reader.text();
  });
  return meta;
}

const HOLD_OWNER = Buffer.from(HOLD_OWNER_LABEL);

function readService(reader: ProtobufReader): ServiceClaim {
  let meta: Meta = { name: '', namespace: '', uid: '', resourceVersion: '' };
  let spec: Spec = { type: '', clusterIP: '', clusterIPs: [], ports: [], healthCheckNodePort: 0 };
  reader.message((field) => {
    if (field === 1) meta = readMeta(reader);
    else if (field === 2) spec = readSpec(reader);
  });
  return { ...meta, ...spec };
}

type Meta = Pick<ServiceClaim, 'name' | 'namespace' | 'uid' | 'resourceVersion' | 'holdOwner'>;
type Spec = Omit<ServiceClaim, keyof Meta>;

function readMeta(reader: ProtobufReader): Meta {
  const meta = { name: '', namespace: '', uid: '', resourceVersion: '' };
  let holdOwner: string | undefined;
  reader.message((field) => {
    if (field === 1) meta.name = reader.text(LONGEST_CLAIM_TEXT);
    else if (field === 3) meta.namespace = reader.text(LONGEST_CLAIM_TEXT);
    else if (field === 5) meta.uid = reader.text(LONGEST_CLAIM_TEXT);
    else if (field === 6) meta.resourceVersion = reader.text(LONGEST_CLAIM_TEXT);
    else if (field === 11) holdOwner = readHoldOwner(reader) ?? holdOwner;
  });
  return holdOwner === undefined ? meta : { ...meta, holdOwner };
}

/** The value of one label, when it is the one that is looked for. An entry of a map is written key first. */
function readHoldOwner(reader: ProtobufReader): string | undefined {
  let isHoldOwner = false;
  let value: string | undefined;
  reader.message((field) => {
    if (field === 1) isHoldOwner = reader.isText(HOLD_OWNER);
    else if (field === 2 && isHoldOwner) value = reader.text(LONGEST_CLAIM_TEXT);
  });
  return value;
}

function readSpec(reader: ProtobufReader): Spec {
  const ports: Spec['ports'][number][] = [];
  const clusterIPs: string[] = [];
  const spec = { type: '', clusterIP: '', healthCheckNodePort: 0 };
  reader.message((field) => {
    if (field === 1) ports.push(readPort(reader));
    else if (field === 3) spec.clusterIP = reader.text(LONGEST_CLAIM_TEXT);
    else if (field === 4) spec.type = reader.text(LONGEST_CLAIM_TEXT);
    else if (field === 12) spec.healthCheckNodePort = reader.int32();
    else if (field === 18) clusterIPs.push(reader.text(LONGEST_CLAIM_TEXT));
    if (ports.length > MOST_PORTS) throw new OverBound(`a Service with more than ${MOST_PORTS} ports`);
    if (clusterIPs.length > MOST_CLUSTER_IPS)
      throw new OverBound(`a Service with more than ${MOST_CLUSTER_IPS} clusterIPs`);
  });
  return { ...spec, clusterIPs, ports };
}

function readPort(reader: ProtobufReader): Spec['ports'][number] {
  const port = { protocol: '', nodePort: 0 };
  reader.message((field) => {
    if (field === 2) port.protocol = reader.text(LONGEST_CLAIM_TEXT);
    else if (field === 5) port.nodePort = reader.int32();
  });
  return port;
}
