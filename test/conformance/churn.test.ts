import { describe, expect, jest, test } from '@jest/globals';
import type { Loop } from '../../lib/spec/cluster-spec.ts';
import type { StoredService } from '../../local/stand-in/service-storage.ts';
import { type KubeApiserver, startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { storedService } from '../support/etcd-client.ts';
import { eventually } from '../support/eventually.ts';
import { type Invoked, startHandlers } from '../support/handlers.ts';
import { seededPick } from '../support/ranges.ts';
import { running } from '../support/running.ts';
import { type AdmittedControlPlane, startAdmittedControlPlane } from './admitted-control-plane.ts';
import { parentsOf, repeatDuring, SERVICE_CIDRS, SERVICES } from './running-control-plane.ts';

/* These tests change Services in a real API server for 24 rounds of one hour, while passes of both repairs run. */

const HOURS = 24;
const WORKERS = 4;
/** The number of steps of each worker in a round. */
const STEPS = Number(process.env['CHURN_STEPS'] ?? 2);
/** The hours in which two Services have the same address and node port. */
const PLANTED = { from: 8, to: 12 };
const RANGES = '10.96.0.0/22,fd00:10:96::/112';
jest.setTimeout(180_000 + STEPS * 30_000);

const pick = seededPick(Number(process.env['CHURN_SEED'] ?? 1));

type Life = (name: string, at: KubeApiserver, allocator: string) => AsyncGenerator<void>;

const created = (at: KubeApiserver, name: string, spec: object, metadata: object = {}) =>
  at.send<StoredService>('POST', SERVICES, {
    metadata: { name, ...metadata },
    spec: { ports: [{ port: 80 }], ...spec },
  });
const changed = (at: KubeApiserver, name: string, spec: object) => at.send('PATCH', `${SERVICES}/${name}`, { spec });
const removed = (at: KubeApiserver, name: string) => at.send('DELETE', `${SERVICES}/${name}`);

/**
 * Waits until a Service is a second old. Until then the repair of the API server would delete an IPAddress that a change of this
 * Service adds, because both would be created in the same second.
 */
async function* untilASecondOld(at: KubeApiserver, { metadata }: StoredService) {
  do yield;
  while (Date.now() < Date.parse(metadata.creationTimestamp ?? '') + 1_000 && (await at.request('GET', SERVICES)));
}

async function isUsed(at: KubeApiserver, prefix: string): Promise<boolean> {
  return [...(await parentsOf(at)).keys()].some((address) => address.startsWith(prefix));
}

/** The steps of one Service, from its creation to its deletion. Steps of other Services run between them. */
const LIVES: readonly Life[] = [
  async function* changesType(name, at) {
    await created(at, name, {});
    yield;
    await changed(at, name, { type: 'NodePort' });
    yield;
    await changed(at, name, { type: 'LoadBalancer', externalTrafficPolicy: 'Local' });
    yield;
    await changed(at, name, { type: 'ClusterIP', externalTrafficPolicy: null });
    yield;
    await removed(at, name);
  },
  async function* isAnExternalNameMeanwhile(name, at) {
    const service = await created(at, name, { type: 'NodePort' });
    yield;
    await changed(at, name, { type: 'ExternalName', externalName: 'a.test', clusterIP: null, clusterIPs: null });
    yield* untilASecondOld(at, service);
    await changed(at, name, { type: 'ClusterIP', externalName: null });
    yield;
    await removed(at, name);
  },
  async function* isDeletedWithAFinalizer(name, at) {
    await created(at, name, { type: 'NodePort' }, { finalizers: ['example.com/wait'] });
    yield;
    await removed(at, name);
    yield;
    await at.send('PATCH', `${SERVICES}/${name}`, { metadata: { finalizers: null } });
  },
  async function* hasTwoFamiliesMeanwhile(name, at) {
    const service = await created(at, name, {});
    yield* untilASecondOld(at, service);
    await changed(at, name, { ipFamilyPolicy: 'RequireDualStack' });
    yield;
    const single = { clusterIPs: service.spec.clusterIPs, ipFamilies: ['IPv4'] };
    await changed(at, name, { ipFamilyPolicy: 'SingleStack', ...single });
    yield;
    await removed(at, name);
  },
  async function* hasNoAddress(name, at) {
    await created(at, name, { clusterIP: 'None' });
    yield;
    await removed(at, name);
  },
  /** Creates and deletes a ServiceCIDR. Also performs the steps of kube-controller-manager, which does not run here. */
  async function* hasAServiceCidr(name, at, allocator) {
    const network = `10.97.${Number(name.slice(1)) % 256}`;
    const path = `${SERVICE_CIDRS}/${name}`;
    const setReady = (status: string) => {
      const ready = { type: 'Ready', status, reason: 'X', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
      return at.send('PATCH', `${path}/status`, { status: { conditions: [ready] } });
    };
    const metadata = { name, finalizers: ['networking.k8s.io/service-cidr-finalizer'] };
    await at.send('POST', SERVICE_CIDRS, { metadata, spec: { cidrs: [`${network}.0/24`] } });
    await setReady('True');
    yield;
    // The webhook refuses an address that the table does not have.
    const requested = allocator === 'apiserver' ? { clusterIP: `${network}.7` } : {};
    await eventually(() => created(at, name, requested));
    yield;
    await at.send('DELETE', path);
    await setReady('False');
    yield;
    await removed(at, name);
    do yield;
    while (await isUsed(at, `${network}.`));
    await at.send('PATCH', path, { metadata: { finalizers: null } });
  },
];

let lives = 0;

/** Returns a worker that runs the steps of several Services in turn. Its `end` completes all Services that it began. */
function workerOf(at: KubeApiserver, allocator: string) {
  const pool = new Set<AsyncGenerator<void>>();
  const begin = () => {
    lives += 1;
    const life = (LIVES[lives % LIVES.length] as Life)(`s${lives}`, at, allocator);
    pool.add(life);
    return life;
  };
  const take = async (life: AsyncGenerator<void>) => {
    if ((await life.next()).done) pool.delete(life);
  };
  const work = async () => {
    for (let step = 0; step < STEPS; step++) await take((pick(3) > 0 && [...pool][pick(pool.size)]) || begin());
  };
  const end = async () => {
    while (pool.size > 0) for (const life of pool) await take(life);
  };
  return { work, end };
}

type Plane = Pick<AdmittedControlPlane, 'etcd' | 'apiserver' | 'handlers' | 'close'>;

/** Starts an API server that allocates by itself and runs its own repair. */
async function startStockPlane(): Promise<Plane> {
  const etcd = await startEtcd();
  const apiserver = await startKubeApiserver({ etcd, serviceClusterIPRange: RANGES });
  const spec = { allocator: 'apiserver', apiServers: [{ address: '10.9.8.7' }] };
  const handlers = await startHandlers({ kubeconfigFile: apiserver.kubeconfigFile, spec });
  const close = async () => {
    await handlers.close();
    await etcd.close();
  };
  return { etcd, apiserver, handlers, close };
}

/** Matches findings about leaks, and the line that counts findings beyond the limit of the log. */
const LEAK = /^(?:mayHaveLeaked|leak): the (?:cluster IP|node port) (\S+) |^and \d+ more$/;

describe.each([
  ['apiserver', startStockPlane],
  ['table', (clock: () => number) => startAdmittedControlPlane(RANGES, clock)],
] as const)('with allocator %s', (allocator, start) => {
  let aheadMs = 0;
  let isPlanted = false;
  const plane = running<Plane>(() => start(() => Date.now() + aheadMs));

  async function bothRepairs(): Promise<Invoked[]> {
    return [await plane.handlers.run('cluster-ip-repair'), await plane.handlers.run('node-port-repair')];
  }

  /** Returns the addresses and ports of all Services. */
  async function claims(): Promise<readonly string[]> {
    const { items } = await plane.apiserver.send<{ items: StoredService[] }>('GET', '/api/v1/services');
    return items.flatMap(({ spec: { clusterIPs = [], ports = [], healthCheckNodePort } }) =>
      [...clusterIPs, ...ports.map(({ nodePort }) => nodePort), healthCheckNodePort]
        .filter((item) => item !== undefined && item !== 0 && item !== 'None')
        .map(String),
    );
  }

  /** Expects findings only about planted duplicates and, if the table allocates, leaks. @returns the leaked items */
  function expectNoFalseFinding(hour: number, passes: readonly Invoked[]): string[] {
    const found = passes.map(({ summary: { failed }, errors, findings, counters }) => {
      const others = findings.filter((finding) => allocator === 'apiserver' || !LEAK.test(finding));
      const types = Object.keys(counters)
        .flatMap((name) => /type=(.*)\}/.exec(name)?.[1] ?? [])
        .filter((type) => allocator === 'apiserver' || !/leak/i.test(type));
      return { hour, failed, errors, others, types };
    });
    const duplicate = /^duplicate: .* for service (default\/planted|default\/anchor) was assigned to /;
    const others = isPlanted ? [expect.stringMatching(duplicate)] : [];
    const types = isPlanted ? ['duplicate'] : [];
    expect(found).toEqual(found.map(() => ({ hour, failed: 0, errors: [], others, types })));
    return passes.flatMap(({ findings }) => findings.flatMap((finding) => LEAK.exec(finding)?.[1] ?? []));
  }

  /** Runs passes until `work` is done, and once more after it. @returns the number of passes */
  async function passesDuring(hour: number, work: Promise<unknown>): Promise<number> {
    const passes: Invoked[] = [];
    await repeatDuring(work, async () => void passes.push(...(await bothRepairs())));
    expectNoFalseFinding(hour, passes);
    // Strikes of leaks need an interval between passes. The grace periods of IPAddresses use the clock of the API server.
    if (allocator === 'table') aheadMs += 3_600_000;
    const quiet = await bothRepairs();
    const taken = new Set(await claims());
    const leaks = expectNoFalseFinding(hour, quiet).filter((item) => taken.has(item));
    expect({ hour, leaks }).toEqual({ hour, leaks: [] });
    return passes.length + quiet.length;
  }

  test('passes of both repairs find only the planted duplicates', async () => {
    const { apiserver, etcd } = plane;
    const { spec } = await created(apiserver, 'anchor', { type: 'NodePort' });
    const workers = Array.from({ length: WORKERS }, () => workerOf(apiserver, allocator));
    let passes = 0;
    for (let hour = 0; hour < HOURS; hour++) {
      isPlanted = hour >= PLANTED.from && hour < PLANTED.to;
      if (hour === PLANTED.from) await etcd.putServices([storedService('default', 'planted', spec)]);
      if (hour === PLANTED.to) await etcd.delete('/registry/services/specs/default/planted');
      passes += await passesDuring(hour, Promise.all(workers.map(({ work }) => work())));
    }
    passes += await passesDuring(HOURS, Promise.all(workers.map(({ end }) => end())));
    process.stderr.write(`churn with allocator ${allocator}: ${lives} Services, ${passes} passes\n`);
  });

  test('after the last passes, only addresses and ports of existing Services are allocated', async () => {
    for (let strike = 0; strike < 3; strike++) {
      if (allocator === 'table') aheadMs += 3_600_000;
      await bothRepairs();
    }
    expect(await claims()).toHaveLength(3);
    const counts = async (loop: Loop) => (await plane.handlers.record(loop))?.counts;
    expect(await counts('cluster-ip-repair')).toMatchObject({ allocated: 2 });
    expect(await counts('node-port-repair')).toMatchObject({ allocated: 1 });
  });
});
