import { admission } from '../../lib/admission/admission.ts';
import { allocation } from '../../lib/allocate/allocation.ts';
import type { OutgoingMessage } from '../../lib/aws/send-batches.ts';
import { deregistration } from '../../lib/deregister/deregistration.ts';
import { loopHandler } from '../../lib/dispatch/dispatch.ts';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import type { ApiServerAccess } from '../../lib/kubernetes/kubeconfig.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import { nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import { ClusterConnections } from '../../lib/runtime/cluster-connections.ts';
import { CONCURRENT_PASSES } from '../../lib/runtime/deadline.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import type { Handler } from '../../lib/runtime/invocation.ts';
import { readPauseOfAll } from '../../lib/table/clusters.ts';
import { dynamoDbTable } from '../../lib/table/dynamodb/dynamodb-table.ts';
import { serverClock } from '../../lib/table/dynamodb/server-clock.ts';
import { logOnly } from '../../lib/telemetry/telemetry.ts';
import { anAccess } from '../support/an-access.ts';
import type { Chance } from './clock.ts';
import { ATTACKER, STACK } from './cluster.ts';
import { networkOf } from './network.ts';
import { Process, type ProcessKind } from './process.ts';
import { connectNetwork } from './stand-in-http-client.ts';
import type { World } from './world.ts';

export const TOKEN = 'the-token-of-demo-that-is-not-guessed';
/** The error of the clock of a function's host if it is far off. */
const FAR_SKEW_MS = 16 * 60_000;
const HOUR_MS = 3_600_000;
/**
 * The time for which the store of kubeconfigs fails. It is longer than other faults, and short enough that a leak still gets
 * three strikes.
 */
export const STORE_FAILS_MS = 90_000;
/** An invocation that takes longer may lack the time to release surplus items. */
const CALLS_END_MS = 20_000;
const NO_TELEMETRY = logOnly(() => {});

/** The functions and commands of the world: their processes, how they are invoked, and what they run in. */
export class Functions {
  readonly #world: World;
  /** The number of incidents that currently prevent the functions from running. */
  stops = 0;
  areRepairsStopped = false;
  /** The time until which a third of all calls or of their replies is lost. */
  lossyUntilMs = 0;
  /** The requests of which an invocation ended without an answer or logged errors. */
  readonly cutOff = new Set<string | undefined>();
  /** The events of requests that were sent twice. */
  readonly repeated = new WeakSet<object>();
  /** The last time at which a review could not release what it had allocated, or got no answer to a write. */
  mayLeakAtMs = Number.NEGATIVE_INFINITY;
  onMessage: (body: string) => void = () => {};
  readonly #idle = new Map<string, Process[]>();
  #processes = 0;

  constructor(world: World) {
    this.#world = world;
  }

  get areStopped(): boolean {
    return this.stops > 0;
  }

  /** Returns the table and the clock of a kbctl command. By default it runs on a person's machine, without faults. */
  async kbctl(
    process = this.#desk(),
    deadline = new AbortController().signal,
  ): Promise<{ readonly table: ReturnType<Environment['table']>; readonly nowMs: () => number }> {
    const client = this.#world.table.client(process);
    // The real kbctl writes nothing if the clock is more than 2 s off. Here it writes by the corrected clock.
    const { nowMs } = serverClock(client, process.nowMs);
    const table = dynamoDbTable({ client, tableName: 't', deadline, nowMs, newWriteId: process.newId });
    await readPauseOfAll(table);
    return { table, nowMs };
  }

  #desk(): Process {
    const skewMs = this.skewOf(`person at ${this.#world.clock.nowMs}`);
    return new Process(this.#world, `desk-${++this.#processes}`, 'desk', skewMs);
  }

  /** Returns the clock error of a machine that runs no function. */
  skewOf(name: string): number {
    return this.#world.has('skewedMachines')
      ? this.#world.chance.of(name).oneOf([-HOUR_MS, -2_000, 2_000, HOUR_MS])
      : 0;
  }

  /**
   * Invokes a function, in a warm process if there is one. An error that the function throws is returned as its answer.
   * @returns `undefined` if no answer came because the process ended or its time was over
   */
  async invoke<Answer>(
    kind: ProcessKind,
    event: unknown,
    limitMs = 30_000,
    stack = STACK,
  ): Promise<Answer | Error | undefined> {
    const pool = `${stack} ${kind}`;
    const process = this.#idle.get(pool)?.pop() ?? this.#start(kind, stack);
    const { clock } = this.#world;
    const endsAtMs = clock.nowMs + limitMs;
    process.invocation++;
    process.invokedAtMs = clock.nowMs;
    process.isReading = isReading(event as object);
    process.freeze(0);
    const end = clock.at(endsAtMs, () => process.end());
    const handler = process.handler as Handler<Answer>;
    const environment = process.environment as Environment;
    const work = handler(event, { environment, getRemainingTimeInMillis: () => endsAtMs - clock.nowMs });
    const answer = await Promise.race([work.catch((error: unknown) => asError(error)), process.died]);
    end.isCancelled = true;
    if (process.isDead) this.#world.note(`${process.name} ended in the middle`);
    const isLate = clock.nowMs > process.invokedAtMs + CALLS_END_MS;
    if (process.isDead || isLate || answer instanceof Error)
      this.cutOff.add((event as { requestId?: string }).requestId);
    if (process.isDead || answer === 'died') return undefined;
    this.#idle.set(pool, [...(this.#idle.get(pool) ?? []), process]);
    return answer;
  }

  /** Invokes a function over a network that loses and repeats calls. Gives up after `patienceMs`, as a caller does. */
  async ask<Answer>(
    kind: ProcessKind,
    event: object,
    patienceMs: number,
    chance: Chance,
  ): Promise<Answer | Error | undefined> {
    const { clock, isFaulty } = this.#world;
    const isStopped = this.areStopped;
    await clock.wait(chance.pick(50));
    const lost = isFaulty ? chance.pick(30) : 2;
    if (lost === 0 || isStopped) await clock.wait(patienceMs);
    if (lost === 0 || isStopped) return undefined;
    const answered = this.invoke<Answer>(kind, event);
    if (isFaulty && chance.once(10)) {
      this.repeated.add(event);
      clock.in(chance.pick(3_000), () => void this.invoke(kind, event));
    }
    const answer = await clock.within(patienceMs, answered);
    if (lost === 1) await clock.wait(patienceMs);
    return lost === 1 ? undefined : answer;
  }

  endProcesses(): void {
    for (const processes of this.#idle.values()) for (const process of processes) process.end();
    this.#idle.clear();
  }

  #start(kind: ProcessKind, stack: string): Process {
    const name = `${kind}-${++this.#processes}`;
    const chance = this.#world.chance.of(name);
    const skews = [chance.between(-2_000, 2_000), -FAR_SKEW_MS, FAR_SKEW_MS] as const;
    const process = new Process(this.#world, name, kind, this.#world.has('skewedFunctions') ? chance.oneOf(skews) : 0);
    process.stack = stack;
    process.handler = this.#handlerOf(process);
    process.environment = this.environmentOf(process);
    return process;
  }

  #handlerOf({ kind, pick }: Process): Handler<unknown> {
    switch (kind) {
      case 'endpoints':
        return loopHandler(kubernetesService);
      case 'repair':
        return loopHandler(clusterIpRepair);
      case 'portRepair':
        return loopHandler(nodePortRepair);
      case 'deregister':
        return deregistration();
      case 'admission': {
        const settings = { onFailure: 'refuse', deadlineMs: 8_000, tokenStore: 'ssm', secretsPrefix: 'p/' } as const;
        return admission({ settings, readTokens: async () => ({ outcome: 'read', text: TOKEN }), pick });
      }
      case 'allocate':
        return allocation({ pick });
      case 'agent':
      case 'desk':
        throw new Error(`${kind} is no function`);
    }
  }

  /** Returns the environment of a function. Its parts are the real ones, except those that do I/O. */
  environmentOf(process: Process): Environment {
    const { newId, startDeadline } = process;
    const client = this.#world.table.client(process);
    const clock = serverClock(client, process.nowMs);
    const { nowMs } = clock;
    const table = (deadline: AbortSignal) =>
      dynamoDbTable({ client, tableName: 't', deadline, nowMs, newWriteId: newId });
    const connections = new ClusterConnections({
      nowMs,
      loadKubeconfig: ({ name }, signal) => {
        if (name === ATTACKER) this.#attack(process);
        return this.#kubeconfig(process, signal);
      },
    });
    return {
      nowMs,
      clock,
      newPassId: newId,
      busyMs: () => process.busyMs,
      startDeadline,
      telemetry: () => this.#telemetryOf(process),
      reportingInstance: 'simulation',
      clustersPerTick: CONCURRENT_PASSES,
      stack: process.stack,
      ...(process.kind === 'endpoints' && { tickQueue: { send: (messages) => this.#queue(process, messages) } }),
      table,
      connect: (spec, options) => connections.connect(spec, options),
      resolveHost: (signal) => async (name, given) => {
        const answer = await process
          .exchange(() => this.#world.servers.recordsOf(name), { signal: given ?? signal })
          .catch(() => undefined);
        return answer?.outcome === 'reply' ? answer.reply : undefined;
      },
    };
  }

  #telemetryOf({ name }: Process): ReturnType<Environment['telemetry']> {
    const log = (
      level: string,
      text: string,
      fields: { readonly request?: string; readonly errors?: readonly string[] } = {},
    ) => {
      // The function could not release surplus items, which stay held until the end of their hold.
      if (fields.errors !== undefined) this.cutOff.add(fields.request);
      if (text === 'admission: not released') this.mayLeakAtMs = this.#world.clock.nowMs;
      const broken = (fields.errors ?? []).find((error) => /^(Reference|Type|Range)Error/.test(error));
      if (broken !== undefined) this.#world.violate('broken', `${name}: ${broken}`);
      if (level !== 'info') this.#world.note(`${name}: ${text} ${JSON.stringify(fields).slice(0, 400)}`);
    };
    return { ...NO_TELEMETRY, log };
  }

  /** Ends the process, or, in half of the worlds, blocks it for longer than a pass may take. */
  #attack(process: Process): void {
    const chance = this.#world.chance.of('attacker');
    const ms = chance.between(10_000, 25_000);
    process.freeze(ms);
    process.busyMs += ms;
    if (chance.once(2)) process.end();
  }

  async #kubeconfig(process: Process, signal: AbortSignal): Promise<ApiServerAccess> {
    const { nowMs } = this.#world.clock;
    const isRepair = process.kind.endsWith('epair');
    const mayFail = isRepair && this.#world.has('storeFails') && nowMs < this.#world.calmSinceMs + STORE_FAILS_MS;
    if (mayFail && this.#world.chance.of(`store at ${nowMs}`).once(2))
      throw new ClusterError('Unavailable', 'the store fails');
    const answer = await process.exchange(() => this.#world.servers.kubeconfig, { signal });
    if (answer.outcome !== 'reply') throw new ClusterError('Unavailable', 'the store does not answer');
    const { server, ca, token } = answer.reply;
    const material = connectNetwork(ca, networkOf(this.#world, process, ca));
    return anAccess({
      server,
      tls: () => ({ ca: material, rejectUnauthorized: true }),
      authHeaders: async () => ({ authorization: token }),
    });
  }

  async #queue(process: Process, messages: readonly OutgoingMessage[]): Promise<[]> {
    await process.exchange(() => {
      for (const { body, delaySeconds } of messages) {
        const send = () =>
          this.#world.clock.in(delaySeconds * 1000 + this.#world.chance.pick(700), () => this.onMessage(body));
        send();
        // The queue delivers each message at least once.
        if (this.#world.isFaulty && this.#world.chance.once(this.#world.has('busy') ? 1 : 4))
          this.#world.clock.in(this.#world.chance.pick(3_000), send);
      }
    });
    return [];
  }
}

function isReading({ dryRun, operation, body = '' }: { dryRun?: true; operation?: string; body?: string }): boolean {
  return dryRun === true || operation === 'lookUp' || body.includes('"dryRun":true');
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
