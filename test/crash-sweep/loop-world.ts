import { allocation } from '../../lib/allocate/allocation.ts';
import type { Answer } from '../../lib/allocate/answer.ts';
import type { AllocateRequest } from '../../lib/allocate/request.ts';
import type { KubernetesObject, ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import { deregistration } from '../../lib/deregister/deregistration.ts';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import type { LoopDefinition } from '../../lib/loops/pass.ts';
import type { ClusterAccess, Environment } from '../../lib/runtime/environment.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { claimCluster } from '../../lib/table/clusters.ts';
import type { Item } from '../../lib/table/key-value-table.ts';
import { LEASES } from '../../lib/table/leases.ts';
import { fieldsIn } from '../../lib/table/stored-item.ts';
import { aClusterSpec, type SpecFields, serversAt } from '../support/a-cluster-spec.ts';
import { CutCalls } from '../support/cut-calls.ts';
import { aDispatchWorld } from '../support/dispatch-world.ts';
import { memoryQueue } from '../support/memory-queue.ts';
import { PassWorld, READY, SILENT } from '../support/pass-world.ts';
import { pickLowest } from '../support/ranges.ts';

export const CLUSTER = 'demo';
const STACK = 'prod';
/** The partition of notes about clusters whose passes got no answer. These notes expire. */
const UNREACHABLE = '#fleet';
/** The longest pause within a pass. Pauses end at once in this world, and longer deadlines never end. */
const LONGEST_PAUSE_MS = 1_000;

/** One registered cluster and its functions. Every call to its table, API server, secret and queue can be cut. */
export class LoopWorld extends PassWorld {
  readonly queue = memoryQueue(() => this.nowMs);
  /** Called when a pass has listed the Services. */
  whileListing: () => Promise<unknown> = () => Promise.resolve();
  readonly #functions = aDispatchWorld();
  #requests = 0;

  constructor(objects: readonly KubernetesObject[] = []) {
    super({}, objects);
    this.nowMs = Date.parse('2026-01-01T12:00:00Z');
  }

  async register(spec: SpecFields = {}): Promise<this> {
    await registerCluster(this.table, aClusterSpec({ name: CLUSTER, ...spec }));
    return this;
  }

  /** Registers the cluster, and claims it for the stack, as the first tick does. Until then, no other loop runs a pass for it. */
  async registerClaimed(spec: SpecFields = {}): Promise<this> {
    await this.register(spec);
    await claimCluster(this.table, CLUSTER, STACK);
    return this;
  }

  schedule(): object {
    return { 'detail-type': 'Scheduled Event', time: new Date(this.nowMs).toISOString() };
  }

  /** Invokes the function of a loop once. Default event: a request for the pass, even if it is not due. */
  invoke(loop: LoopDefinition, calls = new CutCalls(), event: unknown = { force: true }): Promise<unknown> {
    return this.#functions.dispatch(loop, event, { environment: this.#environment(calls) });
  }

  withdraw(request: object, calls = new CutCalls()): Promise<unknown> {
    return deregistration()({ cluster: CLUSTER, ...request }, this.#context(calls));
  }

  /** Sends a request to allocate with an id of its own. */
  allocate(items: AllocateRequest['items']): Promise<Answer> {
    this.#requests += 1;
    const requestId = `r${this.#requests}-${this.nowMs}`;
    const request = { requestId, cluster: CLUSTER, operation: 'allocate', items };
    const handler = allocation({ pause: () => Promise.resolve(), pick: pickLowest });
    return handler(request, this.#context(new CutCalls()));
  }

  /** Advances the clock by the interval of the loop and runs a pass, several times. */
  async later(loop: LoopDefinition, passes: number): Promise<void> {
    for (let pass = 0; pass < passes; pass++) {
      this.nowMs += this.spec.intervalSeconds[loop.id] * 1000;
      await this.invoke(loop);
    }
  }

  /** Runs passes as `later` does, and advances the clock to the next one. */
  async untilNext(loop: LoopDefinition, passes: number): Promise<this> {
    await this.later(loop, passes);
    this.nowMs += this.spec.intervalSeconds[loop.id] * 1000;
    return this;
  }

  /**
   * Returns the content of the table, the cluster and the queue. Omits the fields that depend on the number of writes, such as
   * versions and write ids.
   */
  async state(): Promise<object> {
    const partitions = [...this.content].filter(([cluster]) => cluster !== UNREACHABLE);
    const items = partitions.flatMap(([, partition]) => [...partition.values()]).map(itemState);
    const messages = new Set(this.queue.sent.map(({ body }) => body));
    return { items: sorted(items), objects: sorted(await this.#objects()), messages: [...messages].sort() };
  }

  async #objects(): Promise<unknown[]> {
    // Events are not compared, because a pass that is killed after its save writes no Event, and the finding may be over at the
    // next pass.
    const kinds = ['Namespace', 'Service', 'Endpoints', 'EndpointSlice', 'ServiceCIDR', 'IPAddress'] as const;
    const lists = await Promise.all(kinds.map((kind) => this.cluster.port.list(kind, undefined)));
    return lists.flat().map(({ metadata, ...object }) => {
      // A repeated deregistration writes an annotation again, which changes the version.
      const { resourceVersion: _, uid: __, managedFields: ___, annotations: ____, ...rest } = metadata;
      return { ...object, metadata: rest };
    });
  }

  #context(calls: CutCalls) {
    const environment = { ...this.#functions.environment, ...this.#environment(calls) };
    return { environment, getRemainingTimeInMillis: () => 30_000 };
  }

  #environment(calls: CutCalls): Partial<Environment> {
    const unavailable = () => Promise.reject(new ClusterError('Unavailable', 'the secret was not read'));
    const confirm = () => calls.call('confirm the control plane', async () => true, unavailable);
    const access: ClusterAccess = {
      kubernetes: calls.cluster({ ...this.cluster.port, services: () => this.#listed() }),
      probe: calls.prober(async ({ url }) => this.answers.get(new URL(url).hostname) ?? SILENT),
      controlPlane: { id: 'control-plane', confirm },
    };
    return {
      stack: STACK,
      nowMs: () => this.nowMs,
      table: () => calls.table(this.table),
      connect: () => calls.call('read the secret', async () => access, unavailable),
      resolveHost: () => calls.resolver(async (host) => this.records.get(host)),
      tickQueue: calls.queue(this.queue.queue),
      startDeadline: (ms) => ({
        signal: ms <= LONGEST_PAUSE_MS ? AbortSignal.abort() : new AbortController().signal,
        cancel: () => {},
      }),
    };
  }

  async *#listed(): AsyncGenerator<readonly ServiceClaim[]> {
    if (this.services === undefined) yield* this.cluster.port.services();
    else for (const service of this.services) yield [service];
    await this.whileListing();
  }
}

/** Returns a world with a registered cluster, all of whose API servers answer. */
export function endpointsWorld(
  addresses: readonly string[],
  spec: SpecFields = {},
  objects: readonly KubernetesObject[] = [],
): Promise<LoopWorld> {
  const world = new LoopWorld(objects).answer(READY, ...addresses);
  return world.register({ apiServers: serversAt(...addresses), ...spec });
}

/** Returns a world after two passes, one interval later. */
export async function settledWorld(...addresses: readonly string[]): Promise<LoopWorld> {
  return (await endpointsWorld(addresses)).untilNext(kubernetesService, 2);
}

function itemState({ cluster, key, value }: Item): unknown {
  if (key.startsWith('runs/')) {
    // The findings in a run record depend on which pass was the last.
    const { outcome, mode } = fieldsIn(value) ?? {};
    return { cluster, key, value: { outcome, mode } };
  }
  // A lease counts its refreshes and quotes its last probe, and a range contains the id of the pass of its last strike.
  const omitted = key === LEASES ? ['generation', 'lastProbe'] : ['passId'];
  const text = JSON.stringify(value, (name, field) => (omitted.includes(name) ? undefined : field));
  return { cluster, key, value: JSON.parse(text) };
}

function sorted(values: readonly unknown[]): unknown[] {
  const byText = new Map(values.map((value) => [JSON.stringify(value), value]));
  return [...byText.keys()].sort().map((text) => byText.get(text));
}
