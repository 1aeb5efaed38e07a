import type { Plan } from './plan.ts';
import type { ServiceSpec } from './service.ts';

/** One operation of a JSON Patch (RFC 6902). `add` puts a value in the place of one that is there. */
export interface PatchOperation {
  readonly op: 'add';
  readonly path: string;
  readonly value: string | number | readonly string[];
}

/** What was taken for a plan, in its order. */
export interface TakenItems {
  readonly addresses: readonly string[];
  readonly ports: readonly number[];
}

/** Fills in what was taken. An address that was asked for stays as it was written. */
export function patchOf(plan: Plan, { addresses, ports }: TakenItems, sent: ServiceSpec): readonly PatchOperation[] {
  return [...addressOperations(plan, addresses, sent), ...portOperations(plan, ports, sent)];
}

function addressOperations(plan: Plan, taken: readonly string[], sent: ServiceSpec): PatchOperation[] {
  if (plan.addresses.length === 0) return [];
  const clusterIPs = [...plan.clusterIPs];
  for (const [place, { index, value }] of plan.addresses.entries()) clusterIPs[index] = value ?? taken[place] ?? '';
  const isSame =
    sent.clusterIPs.length === clusterIPs.length && sent.clusterIPs.every((ip, index) => ip === clusterIPs[index]);
  if (isSame && sent.clusterIP === clusterIPs[0]) return [];
  return [
    { op: 'add', path: '/spec/clusterIP', value: clusterIPs[0] ?? '' },
    { op: 'add', path: '/spec/clusterIPs', value: clusterIPs },
  ];
}

function portOperations(plan: Plan, taken: readonly number[], sent: ServiceSpec): PatchOperation[] {
  return plan.ports.flatMap(({ at }, place): PatchOperation[] => {
    const value = taken[place] ?? 0;
    if (at === 'healthCheck') {
      return sent.healthCheckNodePort === value ? [] : [{ op: 'add', path: '/spec/healthCheckNodePort', value }];
    }
    const missing = at.filter((index) => sent.ports[index]?.nodePort !== value);
    return missing.map((index) => ({ op: 'add', path: `/spec/ports/${index}/nodePort`, value }));
  });
}
