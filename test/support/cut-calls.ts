import { type MessageQueue, SendError } from '../../lib/aws/send-batches.ts';
import { ClusterError, type ClusterPort, type HostResolver, type Prober } from '../../lib/kubernetes/cluster-port.ts';
import { type KeyValueTable, TableError } from '../../lib/table/key-value-table.ts';
import { tableThrough } from './table-through.ts';

/** All ways in which the cut call can end. */
export const ENDS = {
  'ends the process without effect': 'killedBefore',
  'takes effect and ends the process': 'killedAfter',
  'fails without effect': 'failedBefore',
  'takes effect and loses its reply': 'failedAfter',
  'fails and takes effect after the next run': 'late',
  'gets an unclear reply without effect': 'unclearBefore',
  'takes effect and gets an unclear reply': 'unclearAfter',
} as const;
export type End = (typeof ENDS)[keyof typeof ENDS];

type Fail<T> = () => T | Promise<T>;

const never = <T>() => new Promise<T>(() => {});

/** Counts the calls of a run to all external services, and cuts the run at the call with the number `at`, counted from 0. */
export class CutCalls {
  /** The names of the calls in order, such as `put runs/system-namespaces`. */
  readonly made: string[] = [];
  readonly #at: number;
  readonly #end: End;
  readonly #killed = Promise.withResolvers<void>();
  #isDead = false;
  #late: () => Promise<unknown> = () => Promise.resolve();

  constructor(at = Number.POSITIVE_INFINITY, end: End = 'killedBefore') {
    this.#at = at;
    this.#end = end;
  }

  get cutAt(): string {
    return this.made[this.#at] ?? 'none';
  }

  /** Carries out the call that failed in the run and was to take effect later. */
  arrive(): Promise<unknown> {
    return this.#late();
  }

  /** Waits until the run has ended, with or without an error, or its process was killed. */
  async ends(run: () => Promise<unknown>): Promise<void> {
    await Promise.race([run().catch(() => undefined), this.#killed.promise]);
  }

  /**
   * Makes a call.
   * @param unclear returns the result of a write with an unclear reply. If it is absent, the call fails instead
   */
  async call<T>(name: string, step: () => Promise<T>, fail: Fail<T>, unclear?: () => T): Promise<T> {
    if (this.#isDead) return never();
    const isHere = this.made.push(name) - 1 === this.#at;
    if (!isHere) {
      const result = await step();
      return this.#isDead ? never() : result;
    }
    if (this.#end === 'late') this.#late = step;
    if (this.#end === 'killedAfter' || this.#end === 'failedAfter' || this.#end === 'unclearAfter') await step();
    if (this.#end.startsWith('killed')) {
      this.#isDead = true;
      this.#killed.resolve();
      return never();
    }
    return this.#end.startsWith('unclear') && unclear !== undefined ? unclear() : fail();
  }

  table(table: KeyValueTable): KeyValueTable {
    const fail = () => Promise.reject(new TableError('Unavailable', 'the reply was lost'));
    const unclear = () => ({ outcome: 'unclear' }) as const;
    return {
      ...tableThrough(table, (step, name) => this.call(name, step, fail)),
      get: (cluster, key) => this.call(`get ${key}`, () => table.get(cluster, key), fail),
      put: (item, previous) => this.call(`put ${item.key}`, () => table.put(item, previous), fail, unclear),
    };
  }

  cluster(port: ClusterPort): ClusterPort {
    const fail = () => Promise.reject(new ClusterError('Unavailable', 'the connection was reset'));
    return {
      get: (ref) => this.call(`get ${ref.kind}`, () => port.get(ref), fail),
      list: (kind, ...rest) => this.call(`list ${kind}`, () => port.list(kind, ...rest), fail),
      create: (object) => this.call(`create ${object.kind}`, () => port.create(object), fail),
      update: (object) => this.call(`update ${object.kind}`, () => port.update(object), fail),
      mergePatch: (ref, patch) => this.call(`patch ${ref.kind}`, () => port.mergePatch(ref, patch), fail),
      delete: (object) => this.call(`delete ${object.kind}`, () => port.delete(object), fail),
      services: () => this.#list('Service', port.services(), fail),
      ipAddresses: () => this.#list('IPAddress', port.ipAddresses(), fail),
      servedAtMs: port.servedAtMs,
      allows: (verb, kind) => this.call(`may ${verb} ${kind}`, () => port.allows(verb, kind), fail),
    };
  }

  async *#list<T>(kind: string, items: AsyncIterable<T>, fail: () => Promise<never>): AsyncGenerator<T> {
    for await (const item of items) yield await this.call(`list one ${kind}`, async () => item, fail);
    await this.call(`end the list of ${kind}`, async () => undefined, fail);
  }

  prober(probe: Prober): Prober {
    const fail = () => ({ kind: 'silence', message: 'connect ECONNRESET' }) as const;
    return (target, signal) => this.call(`probe ${target.url}`, () => probe(target, signal), fail);
  }

  resolver(resolve: HostResolver): HostResolver {
    const fail = () => undefined;
    return (host, signal) => this.call(`resolve ${host}`, () => resolve(host, signal), fail);
  }

  queue(queue: MessageQueue): MessageQueue {
    const error = new SendError('Unavailable', 'the reply was lost');
    return {
      send: (messages, ...rest) => {
        const fail = () => messages.map((message) => ({ message, error }));
        return this.call('queue', () => queue.send(messages, ...rest), fail);
      },
    };
  }
}
