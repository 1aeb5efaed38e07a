import { Chance, Clock } from './clock.ts';
import { Cluster } from './cluster.ts';
import { EndpointTruth } from './endpoint-truth.ts';
import { Functions } from './functions.ts';
import { People } from './people.ts';
import { RangeTruth } from './range-truth.ts';
import { ApiServers } from './servers.ts';
import type { Feature, Settings } from './settings.ts';
import { StockCluster } from './stock-cluster.ts';
import { Table } from './table.ts';
import { useTime } from './virtual-time.ts';

export interface Violation {
  readonly kind: string;
  readonly message: string;
}

/** One cluster with its API servers, one table, and all processes that use them, on one clock. */
export class World {
  readonly settings: Settings;
  readonly chance: Chance;
  readonly clock = new Clock();
  readonly servers: ApiServers;
  readonly cluster: Cluster;
  readonly table: Table;
  readonly functions: Functions;
  readonly endpoints: EndpointTruth;
  readonly ranges: RangeTruth;
  readonly people: People;
  /** The users of a cluster whose API servers allocate. */
  readonly stock: StockCluster | undefined;
  readonly violations: Violation[] = [];
  readonly history: string[] = [];
  /** True while calls can fail and incidents happen. */
  isFaulty = true;
  calmSinceMs = Number.POSITIVE_INFINITY;
  hasEnded = false;
  readonly #isRecorded: boolean;

  constructor(settings: Settings, isRecorded = false) {
    this.settings = settings;
    this.#isRecorded = isRecorded;
    this.chance = new Chance(settings.seed);
    useTime(this.clock, this.chance.of('library'));
    this.servers = new ApiServers(this);
    this.cluster = new Cluster(this);
    this.table = new Table(this);
    this.functions = new Functions(this);
    this.endpoints = new EndpointTruth(this);
    this.ranges = new RangeTruth(this);
    this.people = new People(this);
    this.stock = this.has('addresses') ? new StockCluster(this) : undefined;
    this.servers.plane.onWrite = (write) => {
      if (write.kind === 'endpoints' || write.kind === 'endpointslices') this.endpoints.check(write);
      else this.stock?.check(write, this.endpoints.call);
    };
  }

  has(feature: Feature): boolean {
    return this.settings.features.has(feature);
  }

  note(line: string): void {
    if (this.#isRecorded) this.history.push(`${this.timeOf(this.clock.nowMs)} ${line}`);
  }

  timeOf(ms: number): string {
    return new Date(ms).toISOString().slice(11, 23);
  }

  violate(kind: string, message: string): void {
    this.note(`WRONG: ${message}`);
    this.violations.push({ kind, message });
  }
}
