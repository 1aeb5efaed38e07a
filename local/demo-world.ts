import { LOOPS, SCHEDULE_SECONDS } from '../lib/cluster/cluster-spec.ts';
import type { RangeAllocations } from '../lib/table/range-allocations.ts';
import type { EmbeddedKind } from './embedded-cluster.ts';
import type { ApiServers } from './stand-in/api-servers.ts';
import type { ServiceAllocation } from './stand-in/service-storage.ts';
import type { StandInApiServer } from './stand-in/stand-in-api-server.ts';

/** What a demo happens to. */
export interface DemoWorld {
  readonly standIn: StandInApiServer;
  /** Where the API servers take addresses and ports from. */
  readonly allocation: ServiceAllocation;
  /** The primary range, for whoever takes an address without an API server. */
  readonly addresses: Pick<RangeAllocations<string>, 'allocate'>;
  readonly apiServers: Pick<ApiServers, 'start' | 'stop'>;
  readonly newUid: () => string;
  readonly nowMs: () => number;
}

/** Seconds between passes that nobody would wait for otherwise. */
const OFTEN = 15;

/** Small enough that its range can be seen to fill up. */
export const DEMO: EmbeddedKind = {
  name: 'demo',
  addresses: ['192.0.2.1', '192.0.2.2', '192.0.2.3'],
  serviceClusterIPRange: '10.0.0.0/26',
  intervalSeconds: { 'system-namespaces': OFTEN, 'cluster-ip-repair': OFTEN, 'node-port-repair': OFTEN },
};

/** What is not as it is elsewhere. */
export const SPED_UP: readonly string[] = spedUp();

function spedUp(): string[] {
  const often = LOOPS.filter((loop) => loop in DEMO.intervalSeconds);
  const usual = often.map((loop) => `${SCHEDULE_SECONDS[loop]} s`);
  return [
    '',
    'This is a demo: things happen to this cluster, each is told as "demo:", and the loops react.',
    `Sped up for it: ${often.join(', ')} run every ${OFTEN} s`,
    `(else every ${usual.join(', ')}). All else, leases above all, takes the time that it always takes.`,
    'Two minutes show everything once.',
  ];
}
