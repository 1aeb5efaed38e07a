import { beforeEach, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { EVENT_SOURCE, EVENT_TYPE } from '../../lib/aws/send-batches.ts';
import { deregistration } from '../../lib/deregister/deregistration.ts';
import { type ClusterEvent, clusterEventShape } from '../../lib/dispatch/report-pass.ts';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import type { PassReport } from '../../lib/loops/pass.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { updateCluster, withOwner } from '../../lib/table/cluster-registration.ts';
import { claimCluster } from '../../lib/table/clusters.ts';
import { EVENT_SCHEMA } from '../../tools/json-schemas.ts';
import { aDispatchWorld, aLoop, aReport, type DispatchWorld } from '../support/dispatch-world.ts';
import { schemaFaults } from '../support/json-schema-check.ts';
import { downQueue } from '../support/memory-queue.ts';
import { READY } from '../support/pass-world.ts';
import { readInRepository } from '../support/repository.ts';

const DEMO = { schema: 1, stack: 'prod', cluster: 'demo' };
const duplicate = (service: string, message = 'm') =>
  ({ type: 'duplicate', item: '10.0.0.7', service, message }) as const;

let world: DispatchWorld;
let published: ClusterEvent[];
let environment: Partial<Environment>;

beforeEach(async () => {
  world = aDispatchWorld();
  published = [];
  await world.register({ name: 'demo' });
  await claimCluster(world.table, 'demo', 'prod');
  environment = {
    stack: 'prod',
    eventBus: {
      send: async (details) => {
        published.push(...(details as readonly object[] as readonly ClusterEvent[]));
        return [];
      },
    },
  };
});

/** Runs a pass, and returns the published events. */
async function pass(run: () => Promise<PassReport> | PassReport, overrides: Partial<Environment> = {}) {
  published = [];
  const { loop } = aLoop(run, 'node-port-repair');
  await world.dispatch(loop, { force: true }, { environment: { ...environment, ...overrides } });
  for (const event of published) expect(schemaFaults(EVENT_SCHEMA, JSON.parse(JSON.stringify(event)))).toEqual([]);
  return published;
}
const well = () => aReport();
const down = () => Promise.reject(new ClusterError('Unavailable', 'connection refused'));

test('an event is published once when a cluster begins to fail, and once when it is healthy again', async () => {
  expect(await pass(well)).toEqual([
    { ...DEMO, function: 'node-port-repair', change: 'healthy', at: '2026-01-01T12:00:00.000Z' },
  ]);
  expect(await pass(well)).toEqual([]);
  expect(await pass(down)).toMatchObject([
    { change: 'failing', error: { code: 'Unavailable', message: 'connection refused' } },
  ]);
  expect(await pass(down)).toEqual([]);
  expect(await pass(well)).toMatchObject([{ change: 'healthy' }]);
});

test('an event is published once for each finding that opens or closes, even if passes fail in the meantime', async () => {
  await pass(well);
  const finds = (...findings: ReturnType<typeof duplicate>[]) => pass(() => aReport({ findings }));
  expect(await finds(duplicate('a/a'))).toMatchObject([{ change: 'findingOpened', finding: duplicate('a/a') }]);
  expect(await finds(duplicate('a/a', 'in other words'))).toEqual([]);
  expect(await pass(down)).toMatchObject([{ change: 'failing' }]);
  expect(await pass(down)).toEqual([]);
  const opened = { change: 'findingOpened', finding: { service: 'b/b' } };
  expect(await finds(duplicate('a/a'), duplicate('b/b'))).toMatchObject([{ change: 'healthy' }, opened]);
  expect(await finds(duplicate('b/b'))).toMatchObject([{ change: 'findingClosed', finding: { service: 'a/a' } }]);
});

test('events are published for at most twenty new findings of a pass, and the next pass with the same findings publishes no event', async () => {
  const many = () => aReport({ findings: Array.from({ length: 50 }, (_, at) => duplicate(`many/s-${at}`)) });
  expect((await pass(many)).filter(({ change }) => change === 'findingOpened')).toHaveLength(20);
  expect(await pass(many)).toEqual([]);
});

test('an open finding is not published again even if its item is shortened in the run record', async () => {
  const long = () => aReport({ findings: [{ ...duplicate('a/a'), item: 'x'.repeat(500) }] });
  await pass(long);
  expect(await pass(long)).toEqual([]);
});

test('only the stack that owns a cluster publishes the changes of that cluster', async () => {
  await updateCluster(world.table, 'demo', withOwner('other'));
  expect(await pass(down)).toEqual([]);
  await updateCluster(world.table, 'demo', withOwner('prod'));
  expect(await pass(down)).toHaveLength(1);
});

test('a pass succeeds although the events about its cluster cannot be published', async () => {
  await pass(well, { eventBus: downQueue });
  expect(await world.recordOf('demo', 'node-port-repair')).toMatchObject({ outcome: 'succeeded' });
  expect(world.telemetry.counters).toMatchObject({ unpublishedEvents: 1 });
  expect(world.telemetry.logged('cluster events not published')).toHaveLength(1);
});

test('an event is published when a pass or a deregistration changes the endpoints', async () => {
  const connect = world.connecting({ probe: async () => READY });
  const whole = { ...world.environment, ...environment, connect };
  const endpoints = () => published.filter(({ change }) => change === 'endpointsChanged');
  for (const _ of [1, 2]) await world.dispatch(kubernetesService, { force: true }, { environment: whole });
  const changes = [expect.stringMatching(/endpoints/), expect.stringMatching(/endpointslice/)];
  expect(endpoints()).toMatchObject([{ function: 'kubernetes-service', changes }]);
  const [address] = JSON.stringify(endpoints()).match(/\d+\.\d+\.\d+\.\d+/) ?? [];
  published = [];
  const context = { environment: whole, getRemainingTimeInMillis: () => 20_000 };
  await deregistration()({ cluster: 'demo', address, lastOne: true }, context);
  expect(endpoints()).toMatchObject([{ function: 'deregister', cluster: 'demo' }]);
});

test('docs/events.md contains an event that matches the schema, and lists all types of changes', () => {
  const page = readInRepository('docs/events.md');
  const example = JSON.parse(/```json\n([\s\S]+?)```/.exec(page)?.[1] ?? '');
  expect(example).toMatchObject({ source: EVENT_SOURCE, 'detail-type': EVENT_TYPE });
  expect(schemaFaults(EVENT_SCHEMA, example.detail)).toEqual([]);
  const documented = [...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, change]) => change);
  expect(documented.filter((change) => change !== 'change')).toEqual(clusterEventShape.shape.change.options);
});

test('the rule in examples/events-to-sns.yml uses only fields that the events have', () => {
  const { Resources, Parameters } = parse(readInRepository('examples/events-to-sns.yml'));
  const { EventPattern, Targets } = Resources.ClusterEvents.Properties;
  expect(EventPattern).toMatchObject({ source: [EVENT_SOURCE], 'detail-type': [EVENT_TYPE] });
  const { stack, change, ...others } = EventPattern.detail;
  expect([stack, others]).toEqual([[{ Ref: 'StackName' }], {}]);
  expect(clusterEventShape.shape.change.options).toEqual(expect.arrayContaining(change));
  expect(Object.keys(Parameters)).toContain('StackName');
  const fields = Object.values<string>(Targets[0].InputTransformer.InputPathsMap).map((one) =>
    one.replace('$.detail.', ''),
  );
  expect(Object.keys(clusterEventShape.shape)).toEqual(expect.arrayContaining(fields));
});
