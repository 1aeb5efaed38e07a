import type { ClusterPort, ControlPlane } from '../../lib/kubernetes/cluster-port.ts';
import type { PassContext } from '../../lib/loops/pass.ts';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import { aClusterSpec } from './a-cluster-spec.ts';
import { memoryTable } from './memory-table.ts';

export const CONTROL_PLANE: ControlPlane = { id: 'control-plane', confirm: () => Promise.resolve(true) };

export function aPassContext(
  given: { kubernetes: ClusterPort; spec?: Partial<ClusterSpec> } & Partial<Omit<PassContext, 'spec' | 'kubernetes'>>,
): PassContext {
  const { spec, ...rest } = given;
  const nowMs = rest.nowMs ?? (() => 0);
  return {
    spec: aClusterSpec(spec),
    rangesGeneration: 1,
    table: memoryTable({ nowMs }),
    probe: () => Promise.resolve({ kind: 'silence', message: 'nothing is probed' }),
    lookUp: () => Promise.resolve(undefined),
    controlPlane: CONTROL_PLANE,
    passId: 'pass',
    nowMs,
    triesEveryMs: 10_000,
    startDeadline: () => ({ signal: new AbortController().signal, cancel: () => {} }),
    pause: () => Promise.resolve(),
    previous: undefined,
    ...rest,
  };
}
