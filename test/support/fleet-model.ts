import type { MessageQueue } from '../../lib/aws/send-batches.ts';
import { loopHandler } from '../../lib/dispatch/dispatch.ts';
import type { ClusterPort, Prober } from '../../lib/kubernetes/cluster-port.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import { ClusterConnections } from '../../lib/runtime/cluster-connections.ts';
import type { Deadline } from '../../lib/runtime/deadline.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { listFleetNotes } from '../../lib/table/fleet-notes.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { Clock } from '../simulation/clock.ts';
import { aClusterSpec } from './a-cluster-spec.ts';
import { anAccess } from './an-access.ts';
import { aDispatchWorld } from './dispatch-world.ts';
import { CONTROL_PLANE, memoryCluster } from './memory-cluster.ts';
import { queueEvent } from './memory-queue.ts';
import { memoryStore, memoryTable } from './memory-table.ts';
import { recordingTelemetry } from './recording-telemetry.ts';
import { tableThrough } from './table-through.ts';

/** Returns a clock that waits for three turns of Node's event loop after each event, for work that needs no timer. */
export function fleetClock(): Clock {
  return new Clock(Date.parse('2026-01-01T12:00:00Z'), 3);
}

export interface FleetOptions {
  readonly names: readonly string[];
  /** The number of messages that are processed at the same time, each in its own process: the parameter `tickConcurrency`. */
  readonly slots: number;
  /** True if the number of pollers changes as Lambda scales them. Default: one poller for each slot at all times. */
  readonly ramp?: boolean;
}

type Partition = '#clusters' | 'other' | 'of clusters';

const PASS_MS = 300;
/**
 * Lambda reads a queue with five pollers at first, and adds five for each second in which messages wait. How Lambda removes
 * pollers is not documented. The model removes five each second in which no message waits.
 */
const LEAST_POLLERS = 5;
const MINUTE_MS = 60_000;
/** The timeouts of the function and of the messages in its queue (deploy/queues.yml). */
const FUNCTION_TIMEOUT_MS = 55_000;
const HIDDEN_MS = 65_000;
const RETAINED_MS = 185_000;

/** How the passes of a hostile cluster attack their process. */
export type Attack = 'ends' | 'hangs' | 'blocks';

const ATTACK_MS: Readonly<Record<Attack, number>> = { ends: 1_000, hangs: FUNCTION_TIMEOUT_MS, blocks: 14_000 };

interface Message {
  readonly body: string;
  readonly sentAtMs: number;
  readonly visibleAtMs: number;
  readonly receives: number;
}

class ModelProcess {
  busyMs = 0;
  /** Resolves when the event loop is no longer blocked. */
  free: Promise<void> = Promise.resolve();
  readonly handler = loopHandler(kubernetesService);
  readonly #ended = Promise.withResolvers<'ended'>();
  readonly ended = this.#ended.promise;

  async suffer(attack: Attack, clock: Clock): Promise<void> {
    this.busyMs += ATTACK_MS[attack];
    const over = clock.wait(ATTACK_MS[attack]);
    this.free = attack === 'blocks' ? over : new Promise(() => {});
    await over;
    if (attack !== 'blocks') this.#ended.resolve('ended');
  }

  /** Starts a deadline. Its timer does not fire while the event loop is blocked. */
  startDeadline(clock: Clock, ms: number): Deadline {
    const controller = new AbortController();
    const { signal, cancel } = clock.startDeadline(ms);
    signal.addEventListener('abort', () => void this.free.then(() => controller.abort(signal.reason)));
    return { signal: controller.signal, cancel };
  }
}

/** A model of a stack: the function `kubernetes-service`, its queue, its table and its clusters. */
export class FleetModel {
  readonly clock = fleetClock();
  /** Clusters whose API servers give no answer. */
  readonly dead = new Set<string>();
  /** Clusters whose passes attack their process. */
  readonly hostile = new Map<string, Attack>();
  /** The start of each pass, and the end of each pass that its process completed. */
  readonly passes: { readonly name: string; readonly atMs: number }[] = [];
  readonly completed: { readonly name: string; readonly atMs: number }[] = [];
  readonly #options: FleetOptions;
  #busySlots = 0;
  #pollers: number;
  #scaledAtMs = 0;
  readonly #telemetry = recordingTelemetry();
  readonly #waiting: Message[] = [];
  /** Processes of the function without an invocation. */
  readonly #idle: { readonly process: ModelProcess; readonly environment: Environment }[] = [];
  readonly #table: (signal?: AbortSignal) => KeyValueTable;
  readonly #clusters = new Map<string, ClusterPort>();
  #figures = noFigures();

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#pollers = options.ramp ? LEAST_POLLERS : options.slots;
    const store = memoryStore();
    const nowMs = () => this.clock.nowMs;
    this.#table = (deadline) => this.#counted(memoryTable({ nowMs, store, ...(deadline && { deadline }) }));
  }

  async register(): Promise<void> {
    for (const name of this.#options.names) {
      await registerCluster(this.#table(), aClusterSpec({ name, kubeconfig: { secretsManager: name } }));
    }
  }

  async isAlone(name: string): Promise<boolean> {
    const { suspects } = await listFleetNotes(this.#table(), 'prod', 'kubernetes-service');
    return (suspects.get(name)?.suspect.untilMs ?? 0) > this.clock.nowMs;
  }

  /** Simulates one minute from its scheduled event on. @returns what happened in it */
  async minute() {
    this.#figures = noFigures();
    this.#telemetry.lines.length = 0;
    const endMs = this.clock.nowMs + MINUTE_MS;
    const time = new Date(this.clock.nowMs).toISOString();
    void this.#invoke({ 'detail-type': 'Scheduled Event', time });
    while (this.clock.nowMs < endMs) {
      this.#poll();
      this.#scale();
      await this.clock.runUntil(this.clock.nowMs + 100);
    }
    const dropped = this.#telemetry.lines.filter(({ message }) => message === 'tick dropped').length;
    return { ...this.#figures, dropped };
  }

  #startProcess() {
    const connections = new ClusterConnections({
      nowMs: () => this.clock.nowMs,
      sleep: (ms) => this.clock.wait(ms),
      loadKubeconfig: async () => {
        this.#figures.kubeconfigReads += 1;
        return anAccess();
      },
    });
    const process = new ModelProcess();
    return { process, environment: this.#environmentOf(connections, process) };
  }

  #environmentOf(connections: ClusterConnections, process: ModelProcess): Environment {
    return {
      ...aDispatchWorld().environment,
      busyMs: () => process.busyMs,
      nowMs: () => this.clock.nowMs,
      startDeadline: (ms) => process.startDeadline(this.clock, ms),
      telemetry: () => this.#telemetry,
      stack: 'prod',
      table: (signal) =>
        tableThrough(this.#table(signal), async (step) => {
          await process.free;
          return step();
        }),
      tickQueue: this.#queue,
      connect: async (spec, options) => {
        const { name } = spec;
        this.passes.push({ name, atMs: this.clock.nowMs });
        await connections.connect(spec, options);
        if (this.dead.has(name)) await new Promise(() => {});
        const attack = this.hostile.get(name);
        if (attack !== undefined) await process.suffer(attack, this.clock);
        const probe: Prober = async () => {
          await this.clock.wait(PASS_MS);
          await process.free;
          this.completed.push({ name, atMs: this.clock.nowMs });
          return { kind: 'status', status: 200, body: 'ok' };
        };
        return { kubernetes: this.#clusterOf(name), probe, controlPlane: CONTROL_PLANE };
      },
    };
  }

  #clusterOf(name: string): ClusterPort {
    const port = this.#clusters.get(name) ?? memoryCluster().port;
    this.#clusters.set(name, port);
    return port;
  }

  readonly #queue: MessageQueue = {
    send: async (messages) => {
      for (const { body, delaySeconds } of messages) {
        const sentAtMs = this.clock.nowMs;
        this.#enqueue({ body, sentAtMs, visibleAtMs: sentAtMs + delaySeconds * 1000, receives: 0 });
      }
      return [];
    },
  };

  #enqueue(message: Message): void {
    this.#waiting.push(message);
    this.#waiting.sort((one, other) => one.visibleAtMs - other.visibleAtMs);
  }

  #scale(): void {
    if (!this.#options.ramp || this.clock.nowMs < this.#scaledAtMs + 1_000) return;
    this.#scaledAtMs = this.clock.nowMs;
    const step = this.#isWaiting() ? LEAST_POLLERS : -LEAST_POLLERS;
    this.#pollers = Math.min(this.#options.slots, Math.max(LEAST_POLLERS, this.#busySlots, this.#pollers + step));
  }

  #isWaiting(): boolean {
    return (this.#waiting[0]?.visibleAtMs ?? Number.POSITIVE_INFINITY) <= this.clock.nowMs;
  }

  /** Gives each process that is free the message that has waited longest. */
  #poll(): void {
    while (this.#busySlots < this.#pollers && this.#isWaiting()) {
      const message = this.#waiting.shift();
      if (message === undefined || this.clock.nowMs > message.sentAtMs + RETAINED_MS) continue;
      const { body } = message;
      const receives = message.receives + 1;
      const visibleAtMs = this.clock.nowMs + HIDDEN_MS;
      const { dueAtMs, clusters = [] } = JSON.parse(body) as { readonly dueAtMs: number; readonly clusters?: string[] };
      for (const name of clusters) {
        if (!this.dead.has(name) && receives === 1) this.#figures.latenessMs.push(this.clock.nowMs - dueAtMs);
      }
      this.#busySlots += 1;
      void this.#invoke(queueEvent(body, receives)).then((end) => {
        this.#busySlots -= 1;
        if (end === 'ended') this.#enqueue({ ...message, receives, visibleAtMs });
        this.#poll();
      });
    }
  }

  /** Returns whether the process ended before its invocation did. */
  async #invoke(event: unknown): Promise<'ended' | 'answered'> {
    const { process, environment } = this.#idle.shift() ?? this.#startProcess();
    const answered = process.handler(event, { environment, getRemainingTimeInMillis: () => 50_000 });
    const end = await Promise.race([answered.then(() => 'answered' as const), process.ended]);
    if (end === 'answered') this.#idle.push({ process, environment });
    return end;
  }

  #counted(table: KeyValueTable): KeyValueTable {
    return tableThrough(table, (step, name, cluster) => {
      const kind = name === 'put' ? 'writes' : 'reads';
      this.#figures[kind][partitionOf(cluster)] += 1;
      return step();
    });
  }
}

function partitionOf(cluster: string): Partition {
  if (cluster === '#clusters') return cluster;
  return cluster.startsWith('#') ? 'other' : 'of clusters';
}

function noFigures() {
  const none = (): Record<Partition, number> => ({ '#clusters': 0, other: 0, 'of clusters': 0 });
  /** For each tick of a cluster that answers: the time from the due time of the tick until the function received it. */
  const latenessMs: number[] = [];
  return { latenessMs, reads: none(), writes: none(), kubeconfigReads: 0 };
}

/** Returns a registered fleet. By default one cluster in ten gives no answer: those whose names end in 7. */
export async function aFleet(
  options: FleetOptions,
  isDead = (name: string) => name.endsWith('7'),
): Promise<FleetModel> {
  const fleet = new FleetModel(options);
  for (const name of options.names.filter(isDead)) fleet.dead.add(name);
  await fleet.register();
  return fleet;
}

/** Returns the value that a share of all values, from 0 to 1, does not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
