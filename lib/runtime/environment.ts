import type { EventBus, MessageQueue, QueueDepth } from '../aws/send-batches.ts';
import type { LoadKubeconfig } from '../aws/stored-kubeconfig.ts';
import type { HealthyTargets } from '../aws/target-group.ts';
import type { ClusterPort, ControlPlane, HostResolver, Prober } from '../kubernetes/cluster-port.ts';
import type { ClusterSpec, Loop } from '../spec/cluster-spec.ts';
import type { ServerClock, Store } from '../table/key-value-table.ts';
import type { TelemetryFactory } from '../telemetry/telemetry.ts';
import type { StartDeadline } from './deadline.ts';

export interface ClusterAccess {
  readonly kubernetes: ClusterPort;
  readonly probe: Prober;
  readonly controlPlane: ControlPlane;
  /** True if the token or the client certificate of the kubeconfig ends soon (`endsSoon`). */
  readonly credentialEndsSoon?: boolean;
}

export interface ConnectOptions {
  readonly loop: Loop;
  readonly signal: AbortSignal;
  /** Receives warnings about the connection, such as disabled verification or a credential that ends soon. */
  readonly warn: (text: string) => void;
}

/** The external dependencies of an invocation that connects to no cluster. Created once per process. */
export interface TableEnvironment extends Pick<Store, 'table'> {
  readonly nowMs: () => number;
  /** The measured difference between the clocks of this host and the table. Absent if both use the same clock. */
  readonly clock?: Pick<ServerClock, 'isMeasured' | 'skewMs'>;
  readonly startDeadline: StartDeadline;
  readonly telemetry: TelemetryFactory;
  /** The stack that runs the passes. If absent, passes write only to clusters without an owner. */
  readonly stack?: string;
}

/** The external dependencies of an invocation that connects to clusters. */
export interface Environment extends TableEnvironment {
  /** Returns the total busy time of this process's event loop in ms. Absent if it is not measured. */
  readonly busyMs?: () => number;
  readonly newPassId: () => string;
  /** The reporting instance of events, which is the same for every function of a stack. */
  readonly reportingInstance: string;
  /** The queue of this loop's ticks. If absent, no ticks are queued. */
  readonly tickQueue?: MessageQueue;
  /** The event bus for changes of clusters. If absent, changes are not published. */
  readonly eventBus?: EventBus;
  /** The number of clusters per message, which is also the number of simultaneous passes. */
  readonly clustersPerTick: number;
  /** Returns access to a cluster. May hang, or throw a `ClusterError`, while it reads the kubeconfig. */
  readonly connect: (spec: ClusterSpec, options: ConnectOptions) => Promise<ClusterAccess>;
  readonly resolveHost: (signal: AbortSignal) => HostResolver;
  /** Reads target groups. If absent, no target group can be read. */
  readonly healthyTargets?: HealthyTargets;
}

export interface DoctorEnvironment extends Environment {
  /** Reads the kubeconfig at each call, without a cache: an operator may have corrected it since the last check. */
  readonly loadKubeconfig: LoadKubeconfig;
  /** The queues of ticks. If absent, for example on a developer's machine, no queue is checked. */
  readonly queues?: { readonly urls: readonly string[]; readonly depth: QueueDepth; readonly concurrency?: number };
}
