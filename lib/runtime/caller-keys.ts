import { createHash } from 'node:crypto';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';

/** At least 128 bits in hex: a hash of less could be turned back by trying. */
export const CALLER_KEY = /^[\x21-\x7e]{32,256}$/;

/**
 * Returns why a function refuses this caller, or `undefined`. Lambda does not pass the identity of the
 * caller to a function, so a caller authenticates by a key whose hash is in the spec.
 * @param stack absent where this is no function: such a process writes the table with rights of its own
 */
export function callerRefusal(
  { name, callerKeys }: ClusterSpec,
  callerKey: string | undefined,
  stack: string | undefined,
): string | undefined {
  if (callerKeys === undefined || stack === undefined) return undefined;
  if (callerKey === undefined) {
    return `cluster ${name} answers only callers with a key: send "callerKey", whose SHA-256 is in callerKeys of its spec`;
  }
  // Hashes are compared, not keys: the time that it takes depends on no key.
  if (callerKeys.includes(createHash('sha256').update(callerKey).digest('hex'))) return undefined;
  return `cluster ${name} does not accept this callerKey: its SHA-256 is not in callerKeys of the spec`;
}
