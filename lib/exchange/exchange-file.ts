import { CLUSTER_RANGES, type ClusterRanges, clusterRangesFromJson } from './cluster-ranges.ts';
import { ExchangeError, malformed, refusalOr } from './errors.ts';
import { utf8Text } from './protobuf.ts';
import {
  MAGIC,
  RANGE_ALLOCATION,
  type RangeAllocation,
  rangeAllocationFromJson,
  rangeAllocationFromStorage,
  wrongKind,
} from './range-allocation.ts';

export type ExchangeFile =
  | { readonly kind: 'RangeAllocation'; readonly allocation: RangeAllocation }
  | { readonly kind: 'ClusterRanges'; readonly clusterRanges: ClusterRanges };

/** Three ranges of 20 bits with all their holds take less than a half of it in JSON; etcd takes no more by default. */
const MOST_BYTES = 1.5 * 1024 * 1024;

const ENCRYPTED = new TextEncoder().encode('k8s:enc:');
const NEWLINE = 0x0a;

/**
 * Reads a file in any of its formats. Refusals: `TooLarge`, `UnknownForm`, `WrongKind`, `Malformed`,
 * `NotInRange`.
 */
export function readExchangeFile(bytes: Uint8Array): ExchangeFile | ExchangeError {
  if (bytes.length > MOST_BYTES) {
    return new ExchangeError(
      'TooLarge',
      `The file has ${bytes.length} bytes, and no ranges take more than ${MOST_BYTES}: it is not an export.`,
    );
  }
  if (bytes.length === 0) return new ExchangeError('UnknownForm', 'The file is empty. Export it again.');
  if (startsWith(bytes, MAGIC)) return refusalOr(() => fromStorage(bytes));
  if (startsWith(bytes, ENCRYPTED)) {
    return new ExchangeError(
      'UnknownForm',
      'The file is encrypted, as the API server keeps it in etcd: take the ranges out of the resources of its encryption configuration, and read the object again once the API server has written it.',
    );
  }
  return refusalOr(() => fromJson(bytes));
}

/**
 * `etcdctl get --print-value-only` ends what it prints with a newline. To protobuf that is the beginning of a field
 * without its length: what parses without it, and not with it, was printed so.
 */
function fromStorage(bytes: Uint8Array): ExchangeFile {
  const whole = refusalOr(() => rangeAllocationFromStorage(bytes));
  const isPrinted = whole instanceof ExchangeError && whole.code === 'Malformed' && bytes.at(-1) === NEWLINE;
  const allocation = isPrinted ? rangeAllocationFromStorage(bytes.subarray(0, -1)) : whole;
  if (allocation instanceof ExchangeError) throw allocation;
  return { kind: 'RangeAllocation', allocation };
}

function fromJson(bytes: Uint8Array): ExchangeFile {
  const value = parsed(bytes);
  const { apiVersion, kind } = Object(value) as { readonly apiVersion?: unknown; readonly kind?: unknown };
  if (apiVersion === RANGE_ALLOCATION.apiVersion && kind === RANGE_ALLOCATION.kind) {
    return { kind: 'RangeAllocation', allocation: rangeAllocationFromJson(value) };
  }
  if (apiVersion === CLUSTER_RANGES.apiVersion && kind === CLUSTER_RANGES.kind) {
    return { kind: 'ClusterRanges', clusterRanges: clusterRangesFromJson(value) };
  }
  throw wrongKind(typeof apiVersion === 'string' ? apiVersion : '', typeof kind === 'string' ? kind : '');
}

function parsed(bytes: Uint8Array): unknown {
  const text = utf8Text(bytes);
  if (text === undefined || !/^\s*\{/.test(text)) {
    throw new ExchangeError(
      'UnknownForm',
      'The file is neither JSON nor the protobuf that API servers keep in etcd. With etcdctl, use --print-value-only.',
    );
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw malformed(`it is no JSON${error instanceof Error ? ` (${error.message.slice(0, 200).toWellFormed()})` : ''}`);
  }
}

function startsWith(bytes: Uint8Array, beginning: Uint8Array): boolean {
  return beginning.every((byte, index) => bytes[index] === byte);
}
