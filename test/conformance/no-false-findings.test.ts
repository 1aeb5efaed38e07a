import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Handlers, type Invoked, startHandlers } from '../support/handlers.ts';
import { runningControlPlane } from '../support/running-control-plane.ts';

const SERVICES = 200;
const AT_A_TIME = 4;
const path = '/api/v1/namespaces/default/services';

const { apiserver } = runningControlPlane();
let handlers: Handlers;

beforeAll(async () => {
  handlers = await startHandlers({
    kubeconfigFile: apiserver.kubeconfigFile,
    spec: { allocator: 'apiserver', apiServers: [{ address: '10.9.8.7' }] },
  });
});

afterAll(() => handlers?.close());

/** Every fourth has a node port, every seventh no address. */
function specOf(index: number): object {
  if (index % 7 === 6) return { clusterIP: 'None', ports: [{ port: 80 }] };
  return { type: index % 4 === 0 ? 'NodePort' : 'ClusterIP', ports: [{ port: 80 }] };
}

async function create(index: number): Promise<void> {
  const reply = await apiserver.request('POST', path, { metadata: { name: `s${index}` }, spec: specOf(index) });
  expect(reply).toMatchObject({ status: 201 });
}

async function remove(index: number): Promise<void> {
  expect(await apiserver.request('DELETE', `${path}/s${index}`)).toMatchObject({ status: 200 });
}

/** Passes of both repairs, one after another, for as long as `work` is done for every Service. */
async function passesDuring(work: (index: number) => Promise<void>): Promise<Invoked[]> {
  const indexes = Array.from({ length: SERVICES }, (_, index) => index).values();
  const worker = async () => {
    for (const index of indexes) await work(index);
  };
  let working = true;
  const all = Promise.all(Array.from({ length: AT_A_TIME }, worker)).finally(() => {
    working = false;
  });
  const passes: Invoked[] = [];
  const keepPassing = async () => {
    while (working) passes.push(...(await bothRepairs()));
  };
  await Promise.all([all, keepPassing()]);
  return passes;
}

async function bothRepairs(): Promise<Invoked[]> {
  return [await handlers.run('cluster-ip-repair'), await handlers.run('node-port-repair')];
}

function expectNothingFound(passes: readonly Invoked[]): void {
  for (const { summary, findings, errors, counters } of passes) {
    expect({ summary, findings, errors, counters }).toEqual({
      summary: { passes: 1, failed: 0, skipped: 0 },
      findings: [],
      errors: [],
      counters: { passes: 1 },
    });
  }
}

async function counts() {
  const ips = await handlers.record('cluster-ip-repair');
  const ports = await handlers.record('node-port-repair');
  return { services: ips?.counts['services'], ips: ips?.counts['allocated'], ports: ports?.counts['allocated'] };
}

test('two hundred Services come and go through the API while passes run, and nothing is found', async () => {
  expectNothingFound(await bothRepairs());
  expect(await counts()).toEqual({ services: 1, ips: 1, ports: 0 });

  const whileCreated = await passesDuring(create);
  const withAll = await bothRepairs();

  expectNothingFound([...whileCreated, ...withAll]);
  expect(whileCreated.length).toBeGreaterThanOrEqual(2);
  // Of 200: 28 without an address, and of the other 172 every fourth (43) with a node port.
  expect(await counts()).toEqual({ services: 173, ips: 173, ports: 43 });

  const whileDeleted = await passesDuring(remove);
  const withNone = await bothRepairs();

  expectNothingFound([...whileDeleted, ...withNone]);
  expect(await counts()).toEqual({ services: 1, ips: 1, ports: 0 });
});

test('the repairs write no event', async () => {
  const { body } = await apiserver.request<{ items: readonly { reportingController: string }[] }>(
    'GET',
    '/apis/events.k8s.io/v1/events',
  );
  expect(body.items.map(({ reportingController }) => reportingController)).not.toContainEqual(
    expect.stringContaining('kube-bootstrap-controller'),
  );
});
