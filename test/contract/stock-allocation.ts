import { describe, expect, test } from '@jest/globals';

export type Family = 'IPv4' | 'IPv6';
export type Outcome = 'stored' | 'refused';

/** What a client asks for. A validating admission policy refuses a Service with `isRefused`. */
export interface Asked {
  readonly isRefused?: boolean;
  readonly isDryRun?: boolean;
  /** The Service gets a finalizer. */
  readonly isFinalized?: boolean;
}

/**
 * A cluster with the ServiceCIDRs 10.0.0.0/24 and fd00:10::/112 whose API servers allocate by IPAddresses. Its Services are in the
 * namespace `default`.
 */
export interface StockCluster {
  /** @param wanted for each cluster IP, its family or the address */
  create(name: string, wanted: readonly string[], asked?: Asked): Promise<Outcome>;
  /** Gives a Service these families. Without one it becomes an ExternalName. */
  change(name: string, families: readonly Family[], asked?: Asked): Promise<Outcome>;
  remove(name: string): Promise<void>;
  removeFinalizer(name: string): Promise<void>;
  /** Returns the cluster IPs of a Service; `undefined` if it does not exist. */
  addressesOf(name: string): Promise<readonly string[] | undefined>;
  /** Returns the parent of each IPAddress, such as `services default/a`. */
  records(): Promise<Readonly<Record<string, string>>>;
  /** Creates an IPAddress as another client. @param parent the name of a Service, or `undefined` for an object of another kind */
  placeRecord(address: string, parent: string | undefined): Promise<void>;
  removeRecord(address: string): Promise<void>;
  createCidr(name: string, cidr: string): Promise<void>;
  removeCidr(name: string): Promise<void>;
  /** Makes the API server's own repair check a Service. */
  repair(name: string): Promise<void>;
  /** Repeats the check while the effects of requests may be late. */
  eventually(check: () => Promise<void>): Promise<void>;
}

interface Row {
  readonly title: string;
  readonly steps: (cluster: StockCluster) => Promise<void>;
  /** The number of cluster IPs of each Service of the row at the end; `undefined` if it does not exist. */
  readonly services: Readonly<Record<string, number | undefined>>;
  /** The IPAddresses at the end that are not those of the cluster IPs above. */
  readonly others?: Readonly<Record<string, string>>;
}

const stored = async (outcome: Promise<Outcome>) => expect(await outcome).toBe('stored');
const refused = async (outcome: Promise<Outcome>) => expect(await outcome).toBe('refused');

const OF_ANOTHER_KIND = 'holds /held';

const ROWS: readonly Row[] = [
  {
    title: 'a Service gets an IPAddress for each family',
    steps: async ({ create }) => {
      await stored(create('one', ['IPv4']));
      await stored(create('two', ['IPv6', 'IPv4']));
    },
    services: { one: 1, two: 2 },
  },
  {
    title: 'a Service gets the address that it requests',
    steps: ({ create }) => stored(create('names', ['10.0.0.2'])),
    services: { names: 1 },
  },
  {
    // If only the second family is refused, a real API server may leave the IPAddress of the first.
    title: 'a request for the address of another Service is refused',
    steps: async ({ create }) => {
      await stored(create('has', ['10.0.0.3', 'fd00:10::21']));
      await refused(create('wants', ['10.0.0.3']));
      await refused(create('wants-both', ['10.0.0.3', 'fd00:10::21']));
    },
    services: { has: 2, wants: undefined, 'wants-both': undefined },
  },
  {
    title: 'an address in no ServiceCIDR, the network address and the broadcast address are refused',
    steps: async ({ create }) => {
      await refused(create('out', ['10.9.0.1']));
      await refused(create('network', ['10.0.0.0']));
      await refused(create('broadcast', ['10.0.0.255']));
      await refused(create('network-6', ['fd00:10::']));
      await stored(create('last-6', ['fd00:10::ffff']));
    },
    services: { out: undefined, network: undefined, broadcast: undefined, 'network-6': undefined, 'last-6': 1 },
  },
  {
    title: 'a Service that admission refuses leaves no IPAddress',
    steps: ({ create }) => refused(create('unwanted', ['IPv4', 'IPv6'], { isRefused: true })),
    services: { unwanted: undefined },
  },
  {
    title: 'a second Service of the same name leaves no IPAddress',
    steps: async ({ create }) => {
      await stored(create('twice', ['10.0.0.4']));
      await refused(create('twice', ['10.0.0.5']));
    },
    services: { twice: 1 },
  },
  {
    title: 'a dry run allocates no address',
    steps: async ({ create, change }) => {
      await stored(create('tried', ['10.0.0.6', 'IPv6'], { isDryRun: true }));
      await stored(create('stays', ['IPv4']));
      await stored(change('stays', ['IPv4', 'IPv6'], { isDryRun: true }));
    },
    services: { tried: undefined, stays: 1 },
  },
  {
    title: 'an update can add the second family to a Service, or remove it',
    steps: async ({ create, change }) => {
      await stored(create('grows', ['IPv4']));
      await stored(change('grows', ['IPv4', 'IPv6']));
      await stored(create('shrinks', ['IPv4', 'IPv6']));
      await stored(change('shrinks', ['IPv4']));
    },
    services: { grows: 2, shrinks: 1 },
  },
  {
    title: 'if admission refuses a change of families, the Service keeps its addresses',
    steps: async ({ create, change }) => {
      await stored(create('may-not-grow', ['IPv4']));
      await refused(change('may-not-grow', ['IPv4', 'IPv6'], { isRefused: true }));
      await stored(create('may-not-shrink', ['IPv4', 'IPv6']));
      await refused(change('may-not-shrink', ['IPv4'], { isRefused: true }));
      await stored(create('may-not-leave', ['IPv4']));
      await refused(change('may-not-leave', [], { isRefused: true }));
    },
    services: { 'may-not-grow': 1, 'may-not-shrink': 2, 'may-not-leave': 1 },
  },
  {
    title: 'an ExternalName has no IPAddress, and gets an IPAddress when it becomes a ClusterIP again',
    steps: async ({ create, change }) => {
      await stored(create('external', ['IPv4', 'IPv6']));
      await stored(change('external', []));
      await stored(create('returns', ['10.0.0.7']));
      await stored(change('returns', []));
      await stored(change('returns', ['IPv4']));
    },
    services: { external: 0, returns: 1 },
  },
  {
    title: 'the deletion of a Service releases its addresses, but not before its finalizers are removed',
    steps: async ({ create, remove, removeFinalizer }) => {
      await stored(create('deleted', ['IPv4', 'IPv6']));
      await stored(create('waits', ['IPv4'], { isFinalized: true }));
      await stored(create('finalized', ['IPv4'], { isFinalized: true }));
      for (const name of ['deleted', 'waits', 'finalized']) await remove(name);
      await removeFinalizer('finalized');
    },
    services: { deleted: undefined, waits: 1, finalized: undefined },
  },
  {
    title: 'an IPAddress of an object of another kind blocks its address',
    steps: async ({ create, placeRecord }) => {
      await placeRecord('10.0.0.8', undefined);
      await refused(create('blocked', ['10.0.0.8']));
    },
    services: { blocked: undefined },
    others: { '10.0.0.8': OF_ANOTHER_KIND },
  },
  {
    title: 'the repair of the API server creates the IPAddress of a Service again',
    steps: async ({ create, removeRecord, repair }) => {
      await stored(create('lost', ['10.0.0.9']));
      await removeRecord('10.0.0.9');
      await repair('lost');
    },
    services: { lost: 1 },
  },
  {
    title:
      'the repair of the API server deletes a managed IPAddress that its Service does not list, and keeps all other IPAddresses',
    steps: async ({ create, placeRecord, repair }) => {
      await stored(create('lists-another', ['10.0.0.10']));
      await placeRecord('10.0.0.11', 'lists-another');
      await placeRecord('10.0.0.12', undefined);
      await repair('lists-another');
    },
    services: { 'lists-another': 1 },
    others: { '10.0.0.12': OF_ANOTHER_KIND },
  },
  {
    title: 'an API server allocates from a ServiceCIDR until its deletion, even if two ServiceCIDRs overlap',
    steps: async ({ create, createCidr, removeCidr, eventually }) => {
      await createCidr('comes', '10.7.0.0/28');
      await createCidr('overlaps', '10.0.0.0/23');
      const becomes = (outcome: Outcome, name: string, address: string) =>
        eventually(async () => expect(await create(name, [address])).toBe(outcome));
      await becomes('stored', 'in-new', '10.7.0.1');
      // The broadcast address of the narrower range is an address of the wider one.
      await becomes('stored', 'in-wider', '10.0.0.255');
      await removeCidr('comes');
      await removeCidr('overlaps');
      await becomes('refused', 'in-gone', '10.7.0.2');
      await becomes('refused', 'in-narrower', '10.0.1.2');
    },
    services: { 'in-new': 1, 'in-wider': 1, 'in-gone': undefined, 'in-narrower': undefined },
  },
];

/**
 * Defines the rules by which API servers allocate cluster IPs. Its rows use other names and addresses each: those that they name are
 * below 10.0.0.16, where a real API server allocates none by itself (`calculateRangeOffset` in
 * pkg/registry/core/service/ipallocator/bitmap.go).
 */
export function stockAllocationContract(name: string, cluster: StockCluster): void {
  describe(`allocation by IPAddress with ${name}`, () => {
    test.each(ROWS)('$title', async ({ steps, services, others = {} }) => {
      const before = await cluster.records();
      await steps(cluster);
      await cluster.eventually(async () => {
        const after: Record<string, string> = { ...before, ...others };
        for (const [service, count] of Object.entries(services)) {
          const addresses = await cluster.addressesOf(service);
          expect([service, addresses?.length]).toEqual([service, count]);
          for (const address of addresses ?? []) after[address] = `services default/${service}`;
        }
        expect(await cluster.records()).toEqual(after);
      });
    });
  });
}
