import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';

export type Field = readonly [number: number, value: string | number | Buffer];

export function message(...fields: readonly Field[]): Buffer {
  return Buffer.concat(
    fields.map(([number, value]) => {
      if (typeof value === 'number') return Buffer.concat([varint(number * 8), varint(value)]);
      const bytes = Buffer.from(value);
      return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
    }),
  );
}

/** Returns a number as a varint. A negative number has ten bytes, as in int32 fields. */
function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  while (rest > 0x7fn) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  return Buffer.from([...bytes, Number(rest)]);
}

/** Returns an object as the API sends it, with four magic bytes and a `runtime.Unknown`. */
export function envelope(apiVersion: string, kind: string, raw: Buffer): Buffer {
  const unknown = message([1, message([1, apiVersion], [2, kind])], [2, raw], [3, ''], [4, '']);
  return Buffer.concat([Buffer.from('k8s\0', 'latin1'), unknown]);
}

/** Returns the part of an envelope before `raw`, with this length of `raw`. */
export function envelopeStart(apiVersion: string, kind: string, rawLength: number): Buffer {
  const typeMeta = message([1, message([1, apiVersion], [2, kind])]);
  return Buffer.concat([Buffer.from('k8s\0', 'latin1'), typeMeta, fieldStart(2, rawLength)]);
}

/** Returns the tag and the length of a field whose bytes follow. */
export function fieldStart(field: number, length: number): Buffer {
  return Buffer.concat([varint(field * 8 + 2), varint(length)]);
}

export function serviceList(
  services: readonly ServiceClaim[],
  { resourceVersion = '9', continueToken = '' } = {},
): Buffer {
  const meta = message([1, ''], [2, resourceVersion], [3, continueToken], [4, 3]);
  return envelope('v1', 'ServiceList', message([1, meta], ...services.map((each): Field => [2, service(each)])));
}

/** Returns a list of Services that are given as bytes. */
export function listOf(...services: readonly Buffer[]): Buffer {
  const items = services.map((each): Field => [2, each]);
  return envelope('v1', 'ServiceList', message([1, message([2, '9'])], ...items));
}

/** Returns a Service with additional fields, some of them of a later version. */
function service(claim: ServiceClaim): Buffer {
  const timestamp = message([1, claim.createdAtMs / 1000], [2, 0]);
  const owner = claim.holdOwner;
  const label = (name: string, value: string): Field => [11, message([1, name], [2, value])];
  const labels = owner === undefined ? [] : [label('kube-bootstrap-controller/hold-owner', owner)];
  const meta = message(
    [1, claim.name],
    [2, ''],
    [3, claim.namespace],
    [5, claim.uid],
    [6, claim.resourceVersion],
    [7, 0],
    [8, timestamp],
    label('app', 'web'),
    ...labels,
    label('kube-bootstrap-controller/hold-other', 'team-z'),
    [17, message([1, 'kubectl'], [7, message([1, '{"f:spec":{}}'])])],
  );
  const targetPort = message([1, 0], [2, 80], [3, '']);
  const ports = claim.ports.map(({ protocol, nodePort }): Field => {
    return [1, message([1, 'web'], [2, protocol], [3, 80], [4, targetPort], [5, nodePort])];
  });
  const spec = message(
    [1, message([1, 'web'], [2, 'TCP'], [3, 80], [5, 0])],
    ...ports,
    [3, claim.clusterIP],
    [4, claim.type],
    [7, 'None'],
    [12, claim.healthCheckNodePort],
    [13, 0],
    ...claim.clusterIPs.map((ip): Field => [18, ip]),
    [19, 'IPv4'],
    [99, 'of the future'],
  );
  return message([1, meta], [2, spec], [3, message([1, ''])]);
}

export function status(code: number, reason: string, text: string): Buffer {
  const details = message([1, 'x'], [3, 'services'], [4, message([1, 'cause'])]);
  const raw = message([1, ''], [2, 'Failure'], [3, text], [4, reason], [5, details], [6, code]);
  return envelope('v1', 'Status', raw);
}
