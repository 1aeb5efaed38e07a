import { LOOPS, SCHEDULE_SECONDS } from '../lib/cluster/cluster-spec.ts';
import type { EmbeddedCluster, EmbeddedKind } from './embedded-cluster.ts';
import type { ApiServers } from './stand-in/api-servers.ts';
import { NAMESPACES, SERVICES } from './stand-in/resources.ts';
import { asService, type Given, type StoredServiceSpec } from './stand-in/service-storage.ts';

export interface DemoWorld extends Pick<EmbeddedCluster, 'standIn' | 'allocation'> {
  readonly apiServers: Pick<ApiServers, 'start' | 'stop'>;
  readonly newUid: () => string;
  readonly nowMs: () => number;
}

/** The seconds between passes of the demo; elsewhere they are minutes apart. */
const OFTEN = 15;

/** Small enough that its range visibly fills up. */
export const DEMO: EmbeddedKind = {
  name: 'demo',
  addresses: ['192.0.2.1', '192.0.2.2', '192.0.2.3'],
  serviceClusterIPRange: '10.0.0.0/26',
  intervalSeconds: { 'system-namespaces': OFTEN, 'cluster-ip-repair': OFTEN, 'node-port-repair': OFTEN },
};

export const SPED_UP: readonly string[] = spedUp();

function spedUp(): string[] {
  const often = LOOPS.filter((loop) => loop in DEMO.intervalSeconds);
  const usual = often.map((loop) => `${SCHEDULE_SECONDS[loop]} s`);
  return [
    '',
    'This is a demo: events happen to this cluster, printed as "demo:", and the loops react.',
    `Faster than usual: ${often.join(', ')} run every ${OFTEN} s`,
    `(elsewhere every ${usual.join(', ')}). Leases and everything else take their usual time.`,
    'Everything is shown once in two minutes.',
  ];
}

/** More than any range of a demo contains. */
const MOST_SERVICES = 1_000;

interface Answer {
  readonly status: number;
  readonly message?: string;
  readonly spec?: StoredServiceSpec;
}

/**
 * Creates a Service through the API server, and its namespace if it is missing.
 * @returns its address.
 */
export async function makeService(
  world: DemoWorld,
  namespace: string,
  name: string,
  spec: StoredServiceSpec = {},
): Promise<string> {
  const answer = await tryToMakeService(world, namespace, name, spec);
  if (answer.status !== 201) throw refusal(answer);
  return answer.spec?.clusterIP ?? 'none';
}

export async function fillRange(
  world: DemoWorld,
  namespace: string,
): Promise<{ readonly made: number; readonly refusal: string }> {
  for (let made = 0; made < MOST_SERVICES; made++) {
    const answer = await tryToMakeService(world, namespace, `stall-${made + 1}`, {});
    if (answer.status !== 201) return { made, refusal: answer.message ?? `answered ${answer.status}` };
  }
  throw new Error(`${MOST_SERVICES} Services were made, and none was refused`);
}

/** @returns how many there were. */
export async function deleteServicesIn(world: DemoWorld, namespace: string): Promise<number> {
  const services = world.standIn.store.list(SERVICES, namespace, () => true);
  for (const { metadata } of services) await deleteService(world, namespace, metadata.name);
  return services.length;
}

export async function deleteService(world: DemoWorld, namespace: string, name: string): Promise<void> {
  await deleteAt(world, `${servicesIn(namespace)}/${name}`);
}

/**
 * Stores a copy of a Service as a restored backup of etcd does, without validation or allocation.
 * @returns the address that both have
 */
export function restoreCopy(world: DemoWorld, namespace: string, name: string, original: string): string {
  const { store } = world.standIn;
  const { spec, ...service } = asService(store.get(SERVICES, namespace, original));
  const { creationTimestamp } = service.metadata;
  const metadata = { name, namespace, uid: world.newUid(), ...(creationTimestamp && { creationTimestamp }) };
  store.insert(SERVICES, { ...service, metadata, spec });
  return spec.clusterIP ?? 'none';
}

/** Allocates an address and a port like an API server that stops before it has stored the Service. */
export async function leak({ allocation }: DemoWorld): Promise<{ readonly address: string; readonly port: number }> {
  const address = allocated(await allocation.allocateAddress(undefined));
  return { address, port: allocated(await allocation.allocatePort(undefined)) };
}

function allocated<Item>(result: Given<Item>): Item {
  if ('item' in result) return result.item;
  throw new Error(result.message);
}

async function tryToMakeService(
  world: DemoWorld,
  namespace: string,
  name: string,
  spec: StoredServiceSpec,
): Promise<Answer> {
  if (world.standIn.store.find(NAMESPACES, undefined, namespace) === undefined) {
    await call(world, 'POST', '/api/v1/namespaces', { metadata: { name: namespace } });
  }
  const service = { metadata: { name }, spec: { ports: [{ port: 80 }], ...spec } };
  return call(world, 'POST', servicesIn(namespace), service);
}

export async function deleteAt(world: DemoWorld, path: string): Promise<void> {
  const answer = await call(world, 'DELETE', path);
  if (answer.status !== 200) throw refusal(answer);
}

async function call({ standIn }: DemoWorld, method: string, path: string, body?: object): Promise<Answer> {
  const headers = { 'user-agent': 'a-user' };
  const text = body === undefined ? {} : { body: JSON.stringify(body) };
  const reply = await standIn.handle({ method, path, headers, ...text });
  return { ...(JSON.parse(reply.body) as object), status: reply.status };
}

const servicesIn = (namespace: string) => `/api/v1/namespaces/${namespace}/services`;

function refusal({ status, message }: Answer): Error {
  return new Error(message ?? `the API server answered ${status}`);
}
