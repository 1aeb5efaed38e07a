import { isDnsLabel } from './dns-names.ts';
import { fault, type SpecFault } from './spec-fault.ts';
import type { SpecDraft } from './spec-shape.ts';

/** A cluster's name is a key of the table, and part of others. */
export function nameFaults({ name }: SpecDraft): SpecFault[] {
  if (name === undefined || isClusterName(name)) return [];
  return [fault(['name'], `${quoted(name)} is no cluster name`, 'use a-z, 0-9 and hyphens, at most 63 of them')];
}

/** Whether a cluster could have the name. */
export function isClusterName(name: string): boolean {
  return /^[a-z0-9-]{1,63}$/.test(name);
}

export function systemNamespaceFaults({ systemNamespaces: names = [] }: SpecDraft): SpecFault[] {
  return names.flatMap((name, index) => {
    const at = ['systemNamespaces', index];
    if (name === undefined) return [];
    if (names.indexOf(name) < index) return [fault(at, `${quoted(name)} is listed twice`, 'list each namespace once')];
    if (isDnsLabel(name)) return [];
    return [fault(at, `${quoted(name)} is no namespace name`, 'use a-z, 0-9 and hyphens inside, at most 63 of them')];
  });
}

export function callerKeyFaults({ callerKeys: hashes = [] }: SpecDraft): SpecFault[] {
  return hashes.flatMap((hash, index) => {
    const at = ['callerKeys', index];
    if (hash === undefined) return [];
    if (hashes.indexOf(hash) < index) return [fault(at, 'is listed twice', 'list the hash of each key once')];
    if (/^[0-9a-f]{64}$/.test(hash)) return [];
    // Not quoted: it may be the key itself.
    return [fault(at, 'is no SHA-256 hash in hex', 'write 64 of 0-9 and a-f: printf %s KEY | sha256sum')];
  });
}

function quoted(name: string): string {
  return JSON.stringify(name.length > 70 ? `${name.slice(0, 70)}...` : name);
}
