import { type AllocationHandler, allocation } from '../../lib/allocate/allocation.ts';
import type { Answer } from '../../lib/allocate/answer.ts';
import type { AllocateRequest } from '../../lib/allocate/request.ts';
import type { Allocated, ServiceAllocation } from '../../local/stand-in/service-storage.ts';
import { tableAllocation } from '../../local/stand-in/table-allocation.ts';
import { withAddresses } from '../repair/services.ts';
import { CLUSTER, type World } from './world.ts';

const RANGE = 'serviceips';

/** An API server that stores Services, and callers who allocate, hold, release and let Services claim what they hold. */
export class Callers {
  /** While the passes only observe, another allocator is in charge. */
  owner: 'table' | 'other' | 'none' = 'table';
  readonly #world: World;
  readonly #allocate: AllocationHandler;
  #names = 0;

  constructor(world: World) {
    this.#world = world;
    const pause = () => world.driver.wait(world.driver.pick(1_500));
    this.#allocate = allocation({ pause, pick: world.driver.pick });
  }

  /** Starts a caller every few seconds, while there is trouble. */
  async arrive(): Promise<void> {
    const { driver } = this.#world;
    while (this.#world.isFaulty) {
      await driver.wait(driver.pick(20_000));
      if (this.#world.stopped) continue;
      const name = `${++this.#names}`;
      void (driver.once(2) ? this.#service(`service-${name}`) : this.#request(`request-${name}`));
    }
  }

  async #service(name: string, wanted?: string): Promise<void> {
    const { driver, ledger, services } = this.#world;
    const address = await this.#create(name, wanted);
    if (address === undefined) return;
    await driver.wait(10_000 + driver.pick(400_000));
    if (this.#world.stopped) await driver.wait(600_000);
    services.delete(name);
    ledger.end(address, name);
    if (this.owner !== 'table') return;
    // What an API server does not give back is a leak.
    await this.#storage()
      .releaseAddress(address)
      .catch(() => undefined);
  }

  async #create(name: string, wanted: string | undefined): Promise<string | undefined> {
    const { ledger, services, driver } = this.#world;
    if (this.owner === 'none') return undefined;
    const taken = await (this.owner === 'other' ? { item: this.#unowned() } : this.#take(wanted));
    if (taken === undefined || 'refusal' in taken) return undefined;
    const address = taken.item;
    ledger.own(address, name);
    if (this.owner === 'table') await driver.hop(2_000);
    services.set(name, withAddresses(name, address));
    return address;
  }

  async #take(wanted: string | undefined): Promise<Allocated<string> | undefined> {
    return this.#storage()
      .allocateAddress(wanted)
      .catch(() => undefined);
  }

  async #request(id: string): Promise<void> {
    const { driver, ledger } = this.#world;
    const untilMs = driver.nowMs + 60_000 + driver.pick(400_000);
    const held = await this.#hold(id, untilMs, { range: RANGE, next: true });
    if (held === undefined) return;
    await driver.wait(driver.pick(untilMs - driver.nowMs + 20_000));
    if (ledger.ownersOf(held)[0] !== id) return;
    const next = driver.pick(3);
    if (next === 0) return;
    ledger.end(held, id);
    await (next === 1 ? this.#service(`service-of-${id}`, held) : this.#release(id, held, untilMs));
  }

  async #hold(id: string, untilMs: number, item: AllocateRequest['items'][number]): Promise<string | undefined> {
    const hold = { owner: id, until: new Date(untilMs).toISOString() };
    const answer = await this.#ask({ requestId: id, operation: 'allocate', items: [item], hold });
    const value = answer?.items[0]?.value;
    if (answer?.outcome !== 'done' || value === undefined) return undefined;
    this.#world.ledger.own(String(value), id, untilMs);
    return String(value);
  }

  /** Loses its connection, asks again, looks, releases under another id, and takes the address for something else. */
  async #release(id: string, value: string, untilMs: number): Promise<void> {
    const { driver } = this.#world;
    const items = [{ range: RANGE, value }] as const;
    const once = (requestId: string) => this.#ask({ requestId, operation: 'release', items: [...items] });
    const first = once(`release-${id}`);
    if (driver.once(2)) {
      await first;
      return;
    }
    await driver.wait(driver.pick(400));
    const again = await once(`release-${id}`);
    if (again?.items[0]?.outcome !== 'unknown') return;
    const looked = await this.#ask({ requestId: `look-${id}`, operation: 'lookUp', items: [...items] });
    const isOwn = looked?.items[0]?.hold?.owner === id && untilMs > driver.nowMs + 60_000;
    if (!isOwn || (await once(`second-release-${id}`))?.items[0]?.outcome !== 'released') return;
    await this.#hold(`next-${id}`, driver.nowMs + 300_000, { range: RANGE, value });
  }

  /** Asks again with the same id until there is an answer that lasts. */
  async #ask(request: Omit<AllocateRequest, 'cluster'>): Promise<Answer | undefined> {
    const { driver, ledger } = this.#world;
    for (let times = 0; times < 12 && !this.#world.stopped; times++) {
      const answer = await this.#world
        .invoke(this.#allocate, { ...request, cluster: CLUSTER })
        .catch((error: unknown) => String(error));
      const { operation, requestId } = request;
      const said = typeof answer === 'string' ? answer : (answer.items[0]?.outcome ?? '');
      const why = typeof answer === 'string' ? '' : (answer.error?.code ?? '');
      ledger.note(`${operation} ${requestId}: ${said} ${why}`);
      if (typeof answer !== 'string' && why !== 'InProgress') return answer;
      await driver.wait(5_000);
    }
    return undefined;
  }

  /** A process of its own, which may end in the middle. */
  #storage(): ServiceAllocation {
    const { driver, nowMs } = this.#world;
    const table = this.#world.table();
    return tableAllocation({ table, cluster: CLUSTER, pick: driver.pick, nowMs });
  }

  #unowned(): string {
    const { driver, ledger } = this.#world;
    for (;;) {
      const address = `10.0.0.${2 + driver.pick(29)}`;
      if (ledger.ownersOf(address).length === 0) return address;
    }
  }
}
