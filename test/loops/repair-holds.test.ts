import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { portRangeOf } from '../../lib/allocator/port-range.ts';
import { bitsOf, fromBits, hasBit } from '../../lib/allocator/snapshot-bytes.ts';
import type { FindingType } from '../../lib/cluster/finding.ts';
import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import { type HoldTerms, holdOn, holdsByItem, isSurelyOver } from '../../lib/range/hold.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { rangeAllocations } from '../../lib/table/range-allocations.ts';
import { readRange } from '../../lib/table/ranges.ts';
import { INTERVAL_MS, listing, RepairCluster } from '../repair/repair-cluster.ts';
import { withAddresses, withNodePorts } from '../repair/services.ts';
import { AT_ONCE, describeInEachTable } from '../support/each-table.ts';
import { countedWriteIds, memoryTable } from '../support/memory-table.ts';
import { runs } from '../support/properties.ts';
import { HOLD_END_MARGIN_MS, made, seededPick } from '../support/ranges.ts';

const { primary: PRIMARY, secondary: SECONDARY, nodePorts: PORTS } = RANGE_KEYS;
const ANY: HoldTerms = { owner: 'team-a', takenUpBy: 'any' };

describe('a pass over a range with holds', () => {
  test('a pass over a range with holds counts the held items of each range, and reports how many items it freed after their holds', async () => {
    const cluster = new RepairCluster({ serviceClusterIPRanges: ['10.0.0.0/24', 'fd00::/112'] });
    const over = { ...ANY, untilMs: cluster.nowMs - HOLD_END_MARGIN_MS };
    await cluster.store(PRIMARY, {
      range: '10.0.0.0/24',
      data: fromBits([0, 1, 2]),
      holds: [
        { ...ANY, items: ['10.0.0.1'] },
        { ...over, items: ['10.0.0.2'] },
      ],
    });
    await cluster.store(SECONDARY, {
      range: 'fd00::/112',
      data: fromBits([0]),
      holds: [{ ...ANY, items: ['fd00::1'] }],
    });
    cluster.services = [withAddresses('a', '10.0.0.3', 'fd00::1')];
    const report = await cluster.pass(clusterIpRepair);
    expect(report).toMatchObject({
      changes: [
        'saved ranges/serviceips: 2 of 254 taken in 10.0.0.0/24, 1 held, 1 freed after their hold',
        'saved ranges/secondaryserviceips: 1 of 65535 taken in fd00::/112',
      ],
      findings: [],
      counts: { held: 1, holdsEnded: 1, secondaryHeld: 0, secondaryHoldsEnded: 0, leaks: 0 },
    });
    expect((await cluster.stored(SECONDARY))?.holds).toEqual([]);
  });

  test('a pass over a range with holds reports in observe mode what it would write, and leaves every hold unchanged', async () => {
    const cluster = new RepairCluster({ mode: 'observe' });
    const holds = [{ ...ANY, untilMs: cluster.nowMs - HOLD_END_MARGIN_MS, items: ['30001'] }];
    await cluster.store(PORTS, { range: '30000-32767', data: fromBits([1]), holds });
    const before = await cluster.table.get('test', PORTS);
    expect(await cluster.pass(nodePortRepair)).toMatchObject({ changes: [], counts: { holdsEnded: 1 } });
    expect(cluster.wouldWrite).toEqual(['save ranges/servicenodeports: 0 taken in 30000-32767, 1 freed']);
    expect(await cluster.table.get('test', PORTS)).toEqual(before);
  });

  test('a pass over a range with holds writes nothing while holds continue, however many passes run', async () => {
    const cluster = new RepairCluster();
    const holds = [{ ...ANY, items: ['30001'] }];
    await cluster.store(PORTS, { range: '30000-32767', data: fromBits([1]), holds });
    for (let pass = 0; pass < 5; pass++) {
      expect(await cluster.pass(nodePortRepair)).toMatchObject({ changes: [], findings: [], counts: { held: 1 } });
    }
  });

  test('a pass over a range with holds keeps no holds if the API servers allocate', async () => {
    const cluster = new RepairCluster({ allocator: 'apiserver' });
    await cluster.store(PORTS, { range: '30000-32767', data: fromBits([1]), holds: [{ ...ANY, items: ['30001'] }] });
    await cluster.pass(nodePortRepair);
    expect((await cluster.stored(PORTS))?.holds).toEqual([]);
  });

  test('a pass over a range with holds reports how to end the hold if a Service has a port that is held for another owner, and frees nothing', async () => {
    const cluster = new RepairCluster();
    const holds = [{ ...ANY, takenUpBy: 'owner' as const, items: ['30001'] }];
    await cluster.store(PORTS, { range: '30000-32767', data: fromBits([1]), holds });
    const service = withNodePorts('a', 30_001);
    cluster.services = [service];
    const { findings } = await cluster.pass(nodePortRepair);
    const [, owner = ''] =
      /Label it "kube-bootstrap-controller\/hold-owner: (.+?)"/.exec(findings[0]?.message ?? '') ?? [];
    expect(findings[0]?.message).not.toMatch(/release/);
    cluster.services = [{ ...service, holdOwner: owner }];
    expect(await cluster.pass(nodePortRepair)).toMatchObject({ findings: [], counts: { held: 0 } });
    expect(await cluster.stored(PORTS)).toMatchObject({ data: fromBits([1]), holds: [] });
  });

  test('a pass over a range with holds ends a hold only if the hold was over before the pass read the range', async () => {
    const cluster = new RepairCluster();
    const holds = [{ ...ANY, untilMs: cluster.nowMs + 1 - HOLD_END_MARGIN_MS, items: ['30001'] }];
    await cluster.store(PORTS, { range: '30000-32767', data: fromBits([1]), holds });
    const kubernetes = listing(() => {
      cluster.nowMs += 10;
      return [];
    });
    await cluster.pass(nodePortRepair, { kubernetes });
    expect(await cluster.stored(PORTS)).toMatchObject({ data: fromBits([1]), holds });
    await cluster.pass(nodePortRepair);
    expect(await cluster.stored(PORTS)).toMatchObject({ data: new Uint8Array(0), holds: [] });
  });
});

/** Ten ports: few enough that everybody wants the same. */
const FEW = '30000-30009';
/** Some outlive a pass and some do not. */
const HOLD_MS = [2_000, INTERVAL_MS * 1.5] as const;
const holdMs = (which: number) => HOLD_MS[which % 2 === 0 ? 0 : 1];

const EXPECTED: ReadonlySet<FindingType> = new Set<FindingType>(['leak', 'mayHaveLeaked', 'nothingFree']);

/** One thing that somebody does; `which` chooses the item, request or Service of those that there are. */
interface Step {
  readonly what:
    | 'takeNext'
    | 'takeValue'
    | 'rollBack'
    | 'releaseHold'
    | 'createOverHold'
    | 'createThroughTable'
    | 'create'
    | 'delete'
    | 'wait';
  readonly which: number;
}

interface Request {
  readonly id: string;
  readonly owner: string;
  readonly items: Set<number>;
  untilMs: number;
  takenUpBy: HoldTerms['takenUpBy'];
}

/**
 * An API server whose Services take ports from the table, callers who hold some, and passes between them. It knows what
 * nobody else may have: the ports of live Services, and those whose hold goes on.
 */
class World {
  readonly cluster = new RepairCluster({ serviceNodePortRange: FEW });
  readonly #table: KeyValueTable;
  readonly #pick = seededPick(1);
  #requests: Request[] = [];
  #made = 0;

  constructor(table: KeyValueTable) {
    this.#table = table;
  }

  /** A pass, with what others do after it read the range and after it listed the Services. */
  async pass(afterRead: readonly Step[] = [], afterList: readonly Step[] = []): Promise<void> {
    const steps = (all: readonly Step[]) => this.#steps(all);
    const { cluster } = this;
    async function* list(): AsyncGenerator<ServiceClaim> {
      await steps(afterRead);
      const listed = cluster.services;
      yield* listed;
      await steps(afterList);
    }
    const startedAtMs = cluster.nowMs;
    const over = await this.#overItems();
    const report = await cluster.pass(nodePortRepair, { table: this.#table, kubernetes: listing(() => list()) });
    expect(report.errors).toEqual([]);
    if (afterRead.length + afterList.length === 0) {
      // In this world nobody makes a Service of what others hold, or past the table.
      expect(report.findings.filter(({ type }) => !EXPECTED.has(type))).toEqual([]);
      await this.#expectFreed(over, startedAtMs);
    }
    await this.#expectSound();
  }

  async #steps(all: readonly Step[]): Promise<void> {
    for (const step of all) {
      await this.#step(step);
      await this.#expectSound();
    }
  }

  #step({ what, which }: Step): Promise<unknown> {
    const port = 30_000 + (which % 10);
    const request = this.#requests[which % Math.max(1, this.#requests.length)];
    switch (what) {
      case 'takeNext':
        return this.#take(which, ['next', 'next']);
      case 'takeValue':
        return this.#take(which, [{ value: port }, 'next']);
      case 'rollBack':
        return this.#rollBack(request);
      case 'releaseHold':
        return this.#releaseHold(request);
      case 'createOverHold':
        return this.#createOverHold(request);
      case 'createThroughTable':
        return this.#createThroughTable(request);
      case 'create':
        return this.#create();
      case 'delete':
        return this.#delete(which);
      case 'wait':
        this.cluster.nowMs += HOLD_MS[0] / 2;
        return Promise.resolve();
    }
  }

  get #allocations() {
    const emptyAllocator = () => made(portRangeOf(FEW, this.#pick));
    const range = { cluster: 'test', key: PORTS, allocator: 'table', rangesGeneration: 1, emptyAllocator } as const;
    return rangeAllocations(this.#table, range, AT_ONCE);
  }

  get #live(): number[] {
    return this.cluster.services.flatMap(({ ports }) => ports.map(({ nodePort }) => nodePort));
  }

  /** What is held of requests whose time has not come. */
  #heldOf = (nowMs: number): number[] =>
    this.#requests.flatMap(({ items, untilMs }) => (untilMs > nowMs ? [...items] : []));

  async #take(which: number, wanted: readonly ({ readonly value: number } | 'next')[]): Promise<void> {
    const id = `r${++this.#made}`;
    const owner = `team-${this.#made}`;
    const untilMs = this.cluster.nowMs + holdMs(which);
    const takenUpBy = this.#made % 3 === 0 ? 'any' : 'owner';
    const taken = await this.#allocations.allocate(wanted, { hold: { owner, untilMs, takenUpBy, requestId: id } });
    if (taken.outcome === 'refused') return;
    this.#expectNobodys(taken.items);
    this.#requests.push({ id, owner, items: new Set(taken.items), untilMs, takenUpBy });
  }

  async #rollBack(request: Request | undefined): Promise<void> {
    if (request === undefined) return;
    await this.#allocations.release([...request.items], { requestId: request.id });
    this.#forget(request);
  }

  /** By its items: whoever does this knows that it holds them. */
  async #releaseHold(request: Request | undefined): Promise<void> {
    if (request === undefined || request.untilMs <= this.cluster.nowMs) return;
    await this.#allocations.release([...request.items]);
    this.#forget(request);
  }

  /** The API server knows nothing of holds: a pass ends this one. The Service exists before it is over. */
  async #createOverHold(request: Request | undefined): Promise<void> {
    const [port] = request?.items ?? [];
    if (request === undefined || port === undefined || request.untilMs <= this.cluster.nowMs) return;
    this.#addService(port, request.owner);
    // The answer to the request was given: it is not rolled back any more.
    this.#forget(request);
    const others = [...request.items].filter((item) => item !== port);
    await this.#allocations.release(others);
  }

  async #createThroughTable(request: Request | undefined): Promise<void> {
    const [port] = request?.items ?? [];
    if (request === undefined || port === undefined) return;
    const { holds } = await this.#stored();
    const isMadeOverHold = this.#live.includes(port) && holdOn(holds, String(port)) !== undefined;
    const claim = { holdOwner: request.owner, nowMs: this.cluster.nowMs };
    const taken = await this.#allocations.allocate([{ value: port }], { claim });
    // ADR 11: the table learns of a Service that was made over its hold by a pass. The API server, which has that Service,
    // refuses the second.
    if (taken.outcome === 'refused' || isMadeOverHold) return;
    // Where the hold of `request` is over and was freed, another may hold the port: for any Service, then.
    for (const each of this.#requests) if (each === request || each.takenUpBy === 'any') each.items.delete(port);
    this.#expectNobodys(taken.items);
    this.#addService(port, request.owner);
  }

  async #create(): Promise<void> {
    const taken = await this.#allocations.allocate(['next']);
    if (taken.outcome === 'refused') return;
    this.#expectNobodys(taken.items);
    for (const port of taken.items) this.#addService(port);
  }

  /** The API server removes the Service, then gives its port back. */
  async #delete(which: number): Promise<void> {
    const { services } = this.cluster;
    const gone = services[which % Math.max(1, services.length)];
    if (gone === undefined) return;
    this.cluster.services = services.filter((service) => service !== gone);
    // Every third crashes between the two: a leak.
    if (which % 3 !== 0) await this.#allocations.release(gone.ports.map(({ nodePort }) => nodePort));
  }

  #addService(port: number, holdOwner?: string): void {
    const service = withNodePorts(`s${++this.#made}`, port);
    this.cluster.services = [...this.cluster.services, { ...service, ...(holdOwner !== undefined && { holdOwner }) }];
  }

  #forget(request: Request): void {
    this.#requests = this.#requests.filter((each) => each !== request);
  }

  #expectNobodys(items: readonly number[]): void {
    const others = [...this.#live, ...this.#heldOf(this.cluster.nowMs)];
    expect(items.filter((item) => others.includes(item))).toEqual([]);
  }

  async #stored(): Promise<StoredRange> {
    const read = await readRange(this.#table, 'test', PORTS);
    if (read === undefined) throw new Error('expected a range');
    return read.stored;
  }

  async #expectSound(): Promise<void> {
    const { data, strikes, holds } = await this.#stored();
    const taken = [...bitsOf(data)].map((bit) => 30_000 + bit);
    const mine = [...this.#live, ...this.#heldOf(this.cluster.nowMs)];
    expect(mine.filter((port) => !taken.includes(port))).toEqual([]);
    expect(new Set(mine).size).toBe(mine.length);
    for (const request of this.#requests) {
      if (request.untilMs <= this.cluster.nowMs) continue;
      for (const item of request.items) expect(holdOn(holds, String(item))).toMatchObject({ requestId: request.id });
    }
    const held = [...holdsByItem(holds).keys()].map(Number);
    expect(held.filter((port) => !taken.includes(port))).toEqual([]);
    const struck = [...bitsOf(strikes.once), ...bitsOf(strikes.twice)].map((bit) => 30_000 + bit);
    expect(held.filter((port) => struck.includes(port))).toEqual([]);
  }

  /** Held, over, and without a Service. */
  async #overItems(): Promise<number[]> {
    const read = await readRange(this.#table, 'test', PORTS);
    const held = [...holdsByItem(read?.stored.holds ?? [])].filter(([, hold]) =>
      isSurelyOver(hold, this.cluster.nowMs),
    );
    return held.map(([item]) => Number(item)).filter((port) => !this.#live.includes(port));
  }

  async #expectFreed(over: readonly number[], atMs: number): Promise<void> {
    const { data, holds } = await this.#stored();
    expect(over.filter((port) => hasBit(data, port - 30_000))).toEqual([]);
    expect(holds.filter((hold) => isSurelyOver(hold, atMs))).toEqual([]);
  }

  /** Nobody does anything any more: leaks have their three passes, and holds their time. */
  async settle(): Promise<void> {
    for (let pass = 0; pass < 4; pass++) await this.pass();
    const { data, holds } = await this.#stored();
    expect([...bitsOf(data)].map((bit) => 30_000 + bit)).toEqual(this.#live.toSorted((one, other) => one - other));
    expect(holds).toEqual([]);
  }
}

const step: fc.Arbitrary<Step> = fc.record({
  what: fc.constantFrom(
    'takeNext',
    'takeNext',
    'takeValue',
    'rollBack',
    'releaseHold',
    'createOverHold',
    'createThroughTable',
    'create',
    'delete',
    'wait',
  ),
  which: fc.nat({ max: 99 }),
});
const steps = fc.array(step, { maxLength: 4 });
const story = fc.array(fc.tuple(steps, steps), { minLength: 1, maxLength: 6 });

type Story = readonly (readonly [readonly Step[], readonly Step[]])[];

/** An earlier owner asks for the port of a Service that was made over a later hold, which any Service may take up. */
const MADE_OVER_HOLD: Story = [
  [
    [{ what: 'takeValue', which: 0 }],
    [
      { what: 'takeNext', which: 0 },
      { what: 'takeValue', which: 0 },
      { what: 'takeValue', which: 79 },
      { what: 'createOverHold', which: 11 },
    ],
  ],
  [
    [
      { what: 'takeNext', which: 0 },
      { what: 'createOverHold', which: 95 },
    ],
    [{ what: 'createThroughTable', which: 3 }],
  ],
  [[], []],
];

async function tell(table: KeyValueTable, passes: Story) {
  const world = new World(table);
  await world.pass();
  for (const [afterRead, afterList] of passes) await world.pass(afterRead, afterList);
  await world.settle();
}

const LAW =
  'no live Service loses its port, no other owner gets a held port, and the next pass frees the ports of expired holds';

describe('any sequence of callers, Services and passes', () => {
  test(LAW, async () => {
    const newTable = () => memoryTable({ nowMs: () => 0, newWriteId: countedWriteIds() });
    await fc.assert(
      fc.asyncProperty(story, (passes) => tell(newTable(), passes)),
      { numRuns: runs(50), examples: [[MADE_OVER_HOLD]] },
    );
  });
});

describeInEachTable('Holds under passes', (open) => {
  test(LAW, async () => {
    await fc.assert(
      fc.asyncProperty(story, async (passes) => tell(await open(), passes)),
      { numRuns: runs(2) },
    );
  });
});
