import { numbersOf } from './complete-spec.ts';
import { getsHealthCheckPort, getsNodePorts, mayHaveNodePorts, type ServicePort, type ServiceSpec } from './service.ts';

/** A node port that a Service lacks. */
export interface WantedPort {
  /** Absent: any. */
  readonly value?: number;
  /** The places in `spec.ports` that get it; the first is the one that a refusal names. */
  readonly at: readonly number[] | 'healthCheck';
}

/** Of a new Service: ports that share a number, as TCP and UDP 53 do, share a node port (`initNodePorts`). */
export function newNodePorts(spec: ServiceSpec): readonly WantedPort[] {
  if (!mayHaveNodePorts(spec)) return [];
  const asked = askedByPort(spec.ports);
  const wanted: WantedPort[] = [];
  const shared = new Map<number, { readonly value?: number; readonly at: number[] }>();
  for (const [index, { port, nodePort }] of spec.ports.entries()) {
    if (nodePort === 0 && !getsNodePorts(spec)) continue;
    const one = shared.get(port);
    if (one !== undefined && (nodePort === 0 || nodePort === one.value)) {
      one.at.push(index);
      continue;
    }
    const value = one === undefined ? asked.get(port) : nodePort;
    const other = { ...(value !== undefined && { value }), at: [index] };
    if (one === undefined) shared.set(port, other);
    wanted.push(other);
  }
  return wanted;
}

/** The first node port that is asked for under each port's number. */
function askedByPort(ports: readonly ServicePort[]): ReadonlyMap<number, number> {
  const asked = new Map<number, number>();
  for (const { port, nodePort } of ports) if (nodePort !== 0 && !asked.has(port)) asked.set(port, nodePort);
  return asked;
}

/**
 * Of one that is changed: what the old object has is its own, and each port without a number gets one for itself
 * (`updateNodePorts`).
 * @returns undefined for what the registry refuses: one node port twice under one protocol.
 */
export function updatedNodePorts(after: ServiceSpec, before: ServiceSpec): readonly WantedPort[] | undefined {
  if (!mayHaveNodePorts(after)) return [];
  const own = numbersOf(before.ports);
  const seen = new Set<string>();
  const wanted: WantedPort[] = [];
  for (const [index, { nodePort, protocol }] of after.ports.entries()) {
    if (nodePort === 0) {
      if (getsNodePorts(after)) wanted.push({ at: [index] });
      continue;
    }
    const id = `${protocol}/${nodePort}`;
    if (seen.has(id)) return undefined;
    seen.add(id);
    if (own.has(nodePort)) continue;
    own.add(nodePort);
    wanted.push({ value: nodePort, at: [index] });
  }
  return wanted;
}

/** The port for health checks, once a Service has begun to need one. */
export function healthCheckPort(after: ServiceSpec, before: ServiceSpec | undefined): readonly WantedPort[] {
  if (!getsHealthCheckPort(after) || (before !== undefined && getsHealthCheckPort(before))) return [];
  const { healthCheckNodePort: value } = after;
  return [{ ...(value !== 0 && { value }), at: 'healthCheck' }];
}
