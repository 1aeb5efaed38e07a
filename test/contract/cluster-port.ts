import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import type { EventsV1Event } from '@kubernetes/client-node';
import type { KubernetesObject, ServiceClaim, WholeObject } from '../../lib/cluster/kubernetes-objects.ts';
import type { EndpointSliceObject, EndpointsObject, ServiceObject } from '../../lib/cluster/published-objects.ts';
import type { CallOptions } from '../../lib/kubernetes/api-calls.ts';
import { clusterPort } from '../../lib/kubernetes/api-server-cluster.ts';
import type { ClusterPort, CreateResult, ObjectRef, PatchResult } from '../../lib/kubernetes/cluster-port.ts';
import { planEvents, writeEvents } from '../../lib/kubernetes/events.ts';
import { listAllServices } from '../../lib/kubernetes/item-reader.ts';
import { PERMISSION_GROUPS, selfReview } from '../../lib/kubernetes/permissions.ts';
import type { Transport } from '../../lib/kubernetes/transport.ts';
import { anEndpoints, aSlice } from '../support/an-endpoints.ts';
import { found } from '../support/found.ts';

type Service = ServiceObject & { readonly spec: { readonly clusterIPs?: readonly string[] } };

type Event = WholeObject<EventsV1Event>;

/**
 * Defines the contract of API servers that the loops depend on. A real kube-apiserver and every stand-in pass it, so it uses
 * nothing that only one of them has. Its objects have their own namespaces, so that it can run again on the same server.
 */
export function clusterPortContract(name: string, connect: () => Promise<Transport>): void {
  describe(`the interface ClusterPort with ${name}`, () => {
    const run = randomUUID().slice(0, 8);
    let options: CallOptions;
    let port: ClusterPort;

    const namespaceOf = (topic: string) => `${topic}-${run}`;
    const create = async <Object extends KubernetesObject>(object: Object) => written(await port.create(object));
    const update = async <Object extends KubernetesObject>(object: Object) => written(await port.update(object));
    const makeNamespace = (topic: string) => {
      const name = namespaceOf(topic);
      return create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    };

    beforeAll(async () => {
      const deadline = new AbortController().signal;
      options = { transport: await connect(), server: name, deadline, userAgent: 'contract' };
      port = clusterPort(options);
    });

    const review = () => selfReview(options);

    test('an admin is allowed everything that the loops do', async () => {
      const needed = PERMISSION_GROUPS.flatMap(({ permissions }) => permissions);
      expect(await Promise.all(needed.map((permission) => review().allows(permission)))).toEqual(
        needed.map(() => true),
      );
    });

    test('the client returns the version of the API server', async () => {
      await expect(review().version()).resolves.toMatch(/^v1\.\d+\.\d+/);
    });

    describe('objects', () => {
      const namespace = namespaceOf('objects');

      beforeAll(() => makeNamespace('objects'));

      test('a created object is read back with uid, resourceVersion, kind and apiVersion', async () => {
        const made = await create(service(namespace, 'read-back'));
        const read = await port.get<Service>({ kind: 'Service', namespace, name: 'read-back' });
        expect(read).toEqual(made);
        expect(read).toMatchObject({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'read-back', namespace } });
        expect(read?.metadata.uid).toMatch(/./);
        expect(read?.metadata.resourceVersion).toMatch(/./);
      });

      test.each<[string, ObjectRef]>([
        ['an object', { kind: 'Service', namespace, name: 'nothing' }],
        ['an object without a namespace', { kind: 'Namespace', name: `nothing-${run}` }],
        ['an object in a namespace', { kind: 'Service', namespace: `nothing-${run}`, name: 'nothing' }],
      ])('reading %s that does not exist returns undefined', async (_, ref) => {
        await expect(port.get(ref)).resolves.toBeUndefined();
      });

      test('creating a second object with the same name returns alreadyExists', async () => {
        await create(service(namespace, 'taken'));
        await expect(port.create(service(namespace, 'taken'))).resolves.toEqual({ outcome: 'alreadyExists' });
        const again = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } };
        await expect(port.create(again)).resolves.toEqual({ outcome: 'alreadyExists' });
      });

      test('if two updates follow the same read, the second update is a conflict and changes nothing', async () => {
        const made = await create(service(namespace, 'contested'));
        const first = await update(labelled(made, { winner: 'first' }));
        expect(first.metadata).toMatchObject({ labels: { winner: 'first' }, uid: made.metadata.uid });
        expect(first.metadata.resourceVersion).not.toBe(made.metadata.resourceVersion);
        await expect(port.update(labelled(made, { winner: 'second' }))).resolves.toEqual({ outcome: 'conflict' });
        await expect(port.get({ kind: 'Service', namespace, name: 'contested' })).resolves.toEqual(first);
      });

      test('an update keeps the fields that this project does not know', async () => {
        const odd = {
          ...service(namespace, 'unknown-fields'),
          metadata: { name: 'unknown-fields', namespace, annotations: { 'example.com/owner': 'somebody else' } },
          spec: { ports: [{ name: 'web', port: 80 }], sessionAffinity: 'ClientIP', publishNotReadyAddresses: true },
        };
        const made = await create(odd);
        const after = await update(labelled(made, { touched: 'yes' }));
        expect(after.metadata.annotations).toEqual({ 'example.com/owner': 'somebody else' });
        expect(after.spec).toMatchObject({ sessionAffinity: 'ClientIP', publishNotReadyAddresses: true });
      });

      test('an update of a deleted object does not create it', async () => {
        const made = await create(endpoints(namespace, 'gone', []));
        await expect(port.delete(made)).resolves.toBe('deleted');
        const result = await port.update(labelled(made, { late: 'yes' }));
        expect(['notFound', 'conflict']).toContain(result.outcome);
        await expect(port.get({ kind: 'Endpoints', namespace, name: 'gone' })).resolves.toBeUndefined();
      });

      test('a create or an update that the API refuses returns invalid, and changes nothing', async () => {
        const refused = { outcome: 'invalid', message: expect.stringContaining('spec.ports') };
        const made = await create(service(namespace, 'stays-valid'));
        await expect(port.update({ ...made, spec: { ...made.spec, ports: [] } })).resolves.toMatchObject(refused);
        await expect(port.get({ kind: 'Service', namespace, name: 'stays-valid' })).resolves.toEqual(made);
        const noPorts = { ...service(namespace, 'no-ports'), spec: { ports: [] } };
        await expect(port.create(noPorts)).resolves.toMatchObject(refused);
      });

      test('a merge patch changes the given fields, removes fields that are set to null, and keeps all other fields; it returns notFound for a missing object', async () => {
        const made = await create(labelled(service(namespace, 'patched'), { keep: 'it', drop: 'it' }));
        const patch = { metadata: { labels: { drop: null, add: 'it' } } };
        const ref = { kind: 'Service', namespace, name: 'patched' } as const;
        const after = written(await port.mergePatch<Service>(ref, patch));
        expect(after.metadata.labels).toEqual({ keep: 'it', add: 'it' });
        expect(after.spec).toEqual(made.spec);
        await expect(port.mergePatch({ ...ref, name: 'never-there' }, patch)).resolves.toEqual({ outcome: 'notFound' });
      });

      test('a delete removes the object that was read, and a second delete finds no object', async () => {
        const made = await create(service(namespace, 'once'));
        await expect(port.delete(made)).resolves.toBe('deleted');
        await expect(port.get({ kind: 'Service', namespace, name: 'once' })).resolves.toBeUndefined();
        await expect(port.delete(made)).resolves.toBe('notFound');
      });

      test('a delete is a conflict if the object changed since it was read', async () => {
        const made = await create(service(namespace, 'changed'));
        await update(labelled(made, { changed: 'yes' }));
        await expect(port.delete(made)).resolves.toBe('conflict');
        await expect(port.get({ kind: 'Service', namespace, name: 'changed' })).resolves.toBeDefined();
      });

      test('a delete is a conflict if the object was deleted and created again since it was read', async () => {
        const first = await create(endpoints(namespace, 'replaced', []));
        await port.delete(first);
        const second = await create(endpoints(namespace, 'replaced', []));
        const mixed = { ...second, metadata: { ...second.metadata, uid: first.metadata.uid ?? '' } };
        await expect(port.delete(mixed)).resolves.toBe('conflict');
        const read = await port.get<EndpointsObject>({ kind: 'Endpoints', namespace, name: 'replaced' });
        expect(read?.metadata.uid).toBe(second.metadata.uid);
      });

      test('the API server accepts Endpoints without addresses', async () => {
        const made = await create(endpoints(namespace, 'empty', []));
        expect(made.subsets ?? []).toEqual([]);
      });

      test('the address type of an EndpointSlice cannot change', async () => {
        const made = await create(slice(namespace, 'settled', '10.9.8.7'));
        const result = await port.update({ ...made, addressType: 'IPv6' });
        expect(result.outcome).toBe('invalid');
      });
    });

    test('the client creates, lists and reads a cluster-scoped object without a namespace', async () => {
      const made = await makeNamespace('listed');
      const listed = await port.list('Namespace', undefined);
      expect(listed.map((item) => item.metadata.name)).toEqual(
        expect.arrayContaining(['default', 'kube-system', made.metadata.name]),
      );
      const { name: namespace } = made.metadata;
      const read = await port.get({ kind: 'Namespace', name: namespace });
      expect(read).toMatchObject({ kind: 'Namespace', metadata: { name: namespace } });
    });

    test('no object is created in a namespace that does not exist or is being deleted', async () => {
      const ending = await makeNamespace('ending');
      await expect(port.delete(ending)).resolves.toBe('deleted');
      for (const name of [`nothing-${run}`, ending.metadata.name]) {
        const refused = { outcome: 'namespaceUnavailable', message: expect.stringContaining(name) };
        await expect(port.create(service(name, 'orphan'))).resolves.toEqual(refused);
      }
    });

    describe('lists', () => {
      const namespace = namespaceOf('lists');
      const names = Array.from({ length: 7 }, (_, index) => `item-${index}`);

      beforeAll(async () => {
        await makeNamespace('lists');
        for (const [index, name] of names.entries()) {
          await create(labelled(slice(namespace, name, '10.9.8.7'), { parity: String(index % 2) }));
        }
      });

      test('a list of one namespace has its objects in order, with all fields that an update needs', async () => {
        const items = await port.list<EndpointSliceObject>('EndpointSlice', namespace);
        expect(items.map((item) => item.metadata.name)).toEqual(names);
        expect(items[0]).toMatchObject({ kind: 'EndpointSlice', apiVersion: 'discovery.k8s.io/v1' });
        await update(labelled(found(items[0]), { parity: '0', again: 'yes' }));
      });

      test('a label selector limits the list to the matching objects', async () => {
        const odd = await port.list('EndpointSlice', namespace, 'parity=1');
        expect(odd.map((item) => item.metadata.name)).toEqual(['item-1', 'item-3', 'item-5']);
        await expect(port.list('EndpointSlice', namespace, 'parity=2')).resolves.toEqual([]);
      });

      test('a list without a namespace has the objects of all namespaces', async () => {
        const here = (await port.list('EndpointSlice', undefined)).filter(
          ({ metadata }) => metadata.namespace === namespace,
        );
        expect(here.map(({ metadata }) => metadata.name)).toEqual(names);
      });

      test('the list of a missing namespace is empty', async () => {
        await expect(port.list('Endpoints', `nothing-${run}`)).resolves.toEqual([]);
      });
    });

    describe('the Services of the cluster', () => {
      const namespace = namespaceOf('services');
      const here = (claims: readonly ServiceClaim[], where = namespace) =>
        claims.filter((claim) => claim.namespace === where);

      beforeAll(async () => {
        await makeNamespace('services');
        for (let index = 0; index < 5; index += 1) {
          await create(service(namespace, `plain-${index}`));
        }
        const ports = [
          { name: 'web', port: 80, protocol: 'TCP' },
          { name: 'dns', port: 53, protocol: 'UDP' },
        ];
        await create({ ...service(namespace, 'node-ports'), spec: { type: 'NodePort', ports } });
        const headless = { clusterIP: 'None', ports: [{ port: 80 }] };
        await create({ ...service(namespace, 'headless'), spec: headless });
        const externalName = { type: 'ExternalName', externalName: 'example.com', ports: [] };
        await create({ ...service(namespace, 'elsewhere'), spec: externalName });
      });

      test('a list has each Service once, in order', async () => {
        expect(here(await listAllServices(port)).map(({ name }) => name)).toEqual([
          'elsewhere',
          'headless',
          'node-ports',
          ...[0, 1, 2, 3, 4].map((index) => `plain-${index}`),
        ]);
      });

      test('a claim has the addresses, node ports and other fields of its Service', async () => {
        const claims = here(await listAllServices(port));
        for (const claim of claims) {
          const read = await port.get<Service>({ kind: 'Service', namespace, name: claim.name });
          expect(claim).toEqual(claimIn(found(read)));
        }
        const byName = new Map(claims.map((claim) => [claim.name, claim]));
        expect(byName.get('plain-0')?.clusterIPs).toEqual([byName.get('plain-0')?.clusterIP]);
        expect(byName.get('plain-0')?.clusterIP).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
        expect(byName.get('node-ports')).toMatchObject({ type: 'NodePort' });
        expect(byName.get('node-ports')?.ports.map((each) => each.protocol)).toEqual(['TCP', 'UDP']);
        expect(byName.get('node-ports')?.ports.every((each) => each.nodePort > 0)).toBe(true);
        expect(byName.get('headless')).toMatchObject({ clusterIP: 'None', clusterIPs: ['None'] });
        expect(byName.get('elsewhere')).toMatchObject({ type: 'ExternalName', clusterIP: '', clusterIPs: [] });
      });

      test.each<['withNodePorts' | 'withClusterIPs', string, (claim: ServiceClaim) => boolean]>([
        ['withNodePorts', 'a node port', ({ ports }) => ports.some(({ nodePort }) => nodePort > 0)],
        ['withClusterIPs', 'a cluster IP', ({ clusterIP }) => clusterIP !== '' && clusterIP !== 'None'],
      ])('a list with the option %s contains exactly the Services with %s', async (option, _, isSelected) => {
        const selected = here((await Array.fromAsync(port.services(option))).flat());
        expect(selected).toEqual(here(await listAllServices(port)).filter(isSelected));
        expect(selected.length).toBeGreaterThan(0);
      });

      test('a list is one snapshot: creations and deletions during the read do not change it', async () => {
        const changing = (await makeNamespace('changing-services')).metadata.name;
        const doomed = await create(service(changing, 'zz-doomed'));
        const names: string[] = [];
        for await (const batch of port.services()) {
          if (names.length === 0) {
            await create(service(changing, 'zz-newcomer'));
            await expect(port.delete(doomed)).resolves.toBe('deleted');
          }
          names.push(...batch.map(({ name }) => name));
        }
        expect(names).toContain('zz-doomed');
        expect(names).not.toContain('zz-newcomer');
        expect(here(await listAllServices(port), changing).map(({ name }) => name)).toEqual(['zz-newcomer']);
      });
    });

    describe('events', () => {
      const namespace = namespaceOf('events');
      const firstMs = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
      /** Returns functions that plan the event of one Service, and list it. */
      const eventOf = (name: string, where = namespace) => {
        const draft = {
          regarding: { apiVersion: 'v1', kind: 'Service', namespace: where, name, uid: 'b0c4' },
          reason: 'ClusterIPNotAllocated',
          action: 'ClusterIPAllocation',
          note: 'Cluster IP [IPv4]: 10.0.0.9 is not allocated; repairing',
        };
        const instance = `stack-${run}`;
        return {
          plan: (nowMs: number, previous = {}) =>
            planEvents({ drafts: [draft], loop: 'cluster-ip-repair', instance, previous, nowMs, cap: 10 }),
          list: async () =>
            (await port.list<Event>('Event', namespace)).filter(({ regarding }) => regarding?.name === name),
        };
      };

      beforeAll(() => makeNamespace('events'));

      test('a repeated event extends the series of the existing object', async () => {
        const { plan, list } = eventOf('repeated');
        const first = plan(firstMs);
        await expect(writeEvents(port, first)).resolves.toMatchObject({ written: 1, dropped: 0, errors: [] });
        const [made, ...none] = await list();
        expect(none).toEqual([]);
        expect(made).toMatchObject({
          note: 'Cluster IP [IPv4]: 10.0.0.9 is not allocated; repairing',
          reportingController: 'kube-bootstrap-controller/cluster-ip-repair',
          eventTime: '2026-01-02T03:04:05.678000Z',
        });
        expect(made?.series).toBeUndefined();

        const second = plan(firstMs + 180_000, first.sightings);
        await expect(writeEvents(port, second)).resolves.toMatchObject({ written: 1, dropped: 0, errors: [] });
        const [again, ...others] = await list();
        expect(others).toEqual([]);
        expect(again?.series).toEqual({ count: 2, lastObservedTime: '2026-01-02T03:07:05.678000Z' });
        expect(again?.eventTime).toBe('2026-01-02T03:04:05.678000Z');
      });

      test('if an event exists but is missing in the run record, its repetition extends the series of the existing event', async () => {
        const { plan, list } = eventOf('unrecorded');
        await writeEvents(port, plan(firstMs));
        await expect(writeEvents(port, plan(firstMs + 600_000))).resolves.toMatchObject({ written: 1, errors: [] });
        const [event, ...others] = await list();
        expect(others).toEqual([]);
        expect(event?.series).toEqual({ count: 2, lastObservedTime: '2026-01-02T03:14:05.678000Z' });
      });

      test('if an event was deleted, its repetition creates the event again and continues the count', async () => {
        const { plan, list } = eventOf('deleted');
        await writeEvents(port, plan(firstMs));
        const [event] = await list();
        await expect(port.delete(found(event))).resolves.toBe('deleted');
        const [name = ''] = Object.keys(plan(firstMs).sightings);
        const previous = { [name]: { count: 6, lastSeenAtMs: firstMs, lastWrittenAtMs: firstMs } };
        const report = await writeEvents(port, plan(firstMs + 1_900_000, previous));
        expect(report).toMatchObject({ written: 1, errors: [] });
        expect((await list()).map((each) => each.series?.count)).toEqual([7]);
      });

      test('writeEvents drops an event in a namespace that is being deleted, and reports no error', async () => {
        const made = await makeNamespace('ending-events');
        await port.delete(made);
        const late = eventOf('late', made.metadata.name).plan(firstMs);
        const dropped = { written: 0, dropped: 1, errors: [], sightings: late.sightings };
        await expect(writeEvents(port, late)).resolves.toMatchObject(dropped);
      });
    });
  });
}

/** Returns the object of a create or an update that succeeded. */
function written<T>(result: CreateResult<T> | PatchResult<T>): T {
  if ('object' in result) return result.object;
  throw new Error(`expected it to be written: ${JSON.stringify(result)}`);
}

function labelled<T extends KubernetesObject>(object: T, labels: Readonly<Record<string, string>>): T {
  return { ...object, metadata: { ...object.metadata, labels } };
}

function service(namespace: string, name: string): Service {
  const spec = { ports: [{ name: 'web', port: 80 }] };
  return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace }, spec };
}

function endpoints(namespace: string, name: string, ips: readonly string[]): EndpointsObject {
  return { ...anEndpoints(ips), metadata: { name, namespace } };
}

function slice(namespace: string, name: string, ip: string): EndpointSliceObject {
  return { ...aSlice([ip]), metadata: { name, namespace } };
}

function claimIn({ metadata, spec }: Service): ServiceClaim {
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    type: spec.type ?? '',
    clusterIP: spec.clusterIP ?? '',
    clusterIPs: spec.clusterIPs ?? [],
    ports: (spec.ports ?? []).flatMap(({ protocol = '', nodePort }) => (nodePort ? [{ protocol, nodePort }] : [])),
    healthCheckNodePort: 0,
    createdAtMs: Date.parse(metadata.creationTimestamp ?? ''),
  };
}
