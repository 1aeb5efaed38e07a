import { hash } from 'node:crypto';
import type { ClusterSpec } from '../spec/cluster-spec.ts';

/** A caller key has at least 32 characters, because the hash of a shorter key could be reversed by guessing. */
export const CALLER_KEY = /^[\x21-\x7e]{32,256}$/;

/**
 * Returns the reason to refuse this caller, or `undefined`. Lambda does not pass the caller's identity, so a key authenticates it.
 * @param stack absent in a process that is not a function. Such a process needs no key, because its user has rights on the table
 */
export function callerRefusal(
  { name, callerKeys }: ClusterSpec,
  callerKey: string | undefined,
  stack: string | undefined,
): string | undefined {
  if (callerKeys === undefined || stack === undefined) return undefined;
  if (callerKey === undefined) {
    return `cluster ${name} accepts only callers with a key: send a "callerKey" whose SHA-256 is in callerKeys of its spec`;
  }
  // Compares hashes instead of keys, so that the time reveals nothing about a key.
  if (callerKeys.includes(hash('sha256', callerKey))) return undefined;
  return `cluster ${name} does not accept this callerKey: its SHA-256 is not in callerKeys of the spec`;
}
