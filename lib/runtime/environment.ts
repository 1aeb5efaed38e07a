import type { EventBus } from '../aws/event-bus.ts';
import type { MessageQueue } from '../aws/sqs-queue.ts';
import type { ClusterSpec, Loop } from '../cluster/cluster-spec.ts';
import type { ClusterPort, ControlPlane, HostResolver, Prober } from '../kubernetes/cluster-port.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import type { TelemetryFactory } from '../telemetry/telemetry.ts';
import type { StartDeadline } from './deadline.ts';

export interface ClusterAccess {
  readonly kubernetes: ClusterPort;
  readonly probe: Prober;
  readonly controlPlane: ControlPlane;
  /** A token or client certificate of the kubeconfig is in the last third of its life. */
  readonly credentialEndsSoon?: boolean;
}

export interface ConnectOptions {
  readonly loop: Loop;
  readonly signal: AbortSignal;
  /** Takes what a person should know of the connection: verification that is off, a deprecated API. */
  readonly warn: (text: string) => void;
}

/** Everything outside that an invocation rests on. Made once per warm function. */
export interface Environment {
  readonly nowMs: () => number;
  /** Measures the clock of this host by that of the table, once. Absent: it is measured before, or right. */
  readonly measureClock?: (signal: AbortSignal) => Promise<void>;
  /** How far the clock of this host is ahead of the table's, as far as its replies prove. Absent: it is not measured. */
  readonly skewMs?: () => number;
  /** For how long the event loop of this process has been busy. Absent: it is not measured. */
  readonly busyMs?: () => number;
  readonly newPassId: () => string;
  readonly startDeadline: StartDeadline;
  readonly telemetry: TelemetryFactory;
  /** Who reports events: the same for every function of a stack. */
  readonly reportingInstance: string;
  /** Whose passes these are. Absent, as on a developer's machine: they write where no stack owns the cluster. */
  readonly stack?: string;
  /** This loop's ticks. Absent: none are queued, and the schedule's own are all there is. */
  readonly tickQueue?: MessageQueue;
  /** Takes the changes of clusters. Absent: they are not published. */
  readonly eventBus?: EventBus;
  /** Clusters of one message, and passes at the same time. 1: no two clusters share a process at once. Default 16. */
  readonly clustersPerTick?: number;
  /** The table, its calls ended by the signal. */
  readonly table: (signal: AbortSignal) => KeyValueTable;
  /** Reads the kubeconfig, which may fail or hang. Throws a `ClusterError`. */
  readonly connect: (spec: ClusterSpec, options: ConnectOptions) => Promise<ClusterAccess>;
  readonly resolveHost: (signal: AbortSignal) => HostResolver;
}
