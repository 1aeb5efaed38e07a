import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { answerJsonSchema } from '../../lib/allocate/json-schemas.ts';
import type { AllocateRequest } from '../../lib/allocate/request.ts';
import { reservedAddresses, reservedPorts } from '../../lib/allocator/reserved-band.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { clusterContent, readCluster } from '../../lib/table/clusters.ts';
import { TableError } from '../../lib/table/errors.ts';
import { startTableServer, type TableServer } from '../../local/table-server.ts';
import {
  type AllocateWorld,
  type AllocateWorldOptions,
  anAllocateWorld,
  CLUSTER,
  PRIMARY,
} from '../support/allocate-world.ts';
import { fencedBlocks } from '../support/console-blocks.ts';
import { openTaskWorld, type TaskWorld } from '../support/task-world.ts';
import { allocatingStory } from './allocating-story.ts';
import { playBlock } from './play-page.ts';

// Slow machines run many commands.
jest.setTimeout(120_000);

const PAGE = 'docs/allocating.md';
const read = (page: string) => readFileSync(join(import.meta.dirname, '../..', page), 'utf8');
const text = read(PAGE);
const reference = read('docs/allocate-reference.md');
const blocks = fencedBlocks(text);
const contentOf = (language: string) =>
  [...blocks, ...fencedBlocks(reference)]
    .filter((block) => block.language === language)
    .map(({ lines }) => lines.join('\n'));

describe('At a prompt', () => {
  const [serviceFile = ''] = contentOf('yaml');
  const story = allocatingStory(serviceFile);
  let server: TableServer;
  let world: TaskWorld;

  beforeAll(async () => {
    server = await startTableServer({ key: 'test' });
    world = await openTaskWorld(server.endpoint);
    await story.begins(world);
  });

  afterAll(async () => {
    await world?.close();
    await server?.close();
  });

  test('every command prints what the page shows', async () => {
    for (const block of blocks) await playBlock(PAGE, block, story, world);
  });

  test('the page has every command of its story', () => {
    const commands = [...Object.keys(story.elsewhere ?? {}), ...Object.keys(story.random ?? {})];
    expect(commands.filter((command) => !text.includes(command))).toEqual([]);
  });
});

/** The cluster of the page, at an hour before the end of its first hold. */
function theCluster(options: AllocateWorldOptions = {}): Promise<AllocateWorld> {
  const clock = { nowMs: Date.parse('2026-01-31T11:00:00Z') };
  const spec = { serviceNodePortRange: '30000-32767', ...options.spec };
  return anAllocateWorld({ clock, ...options, spec });
}

test('each request gets the answer of the pages', async () => {
  const shown = contentOf('json').map((block) => JSON.parse(block.replaceAll('prod-eu-1', CLUSTER)) as object);
  const exchanges = shown.flatMap((request, index) =>
    'operation' in request && !('outcome' in request) ? [{ request, answer: shown[index + 1] }] : [],
  );
  const world = await theCluster();
  for (const { request, answer } of exchanges) expect(await world.send(request)).toEqual(answer);
  expect(exchanges).toHaveLength(2);
});

test('the policy of the page allows invoking only this function', () => {
  const [policy] = contentOf('json').filter((block) => block.includes('"Statement"'));
  const { Statement } = JSON.parse(policy ?? '{}') as { Statement?: unknown };
  expect(Statement).toEqual([
    {
      Effect: 'Allow',
      Action: 'lambda:InvokeFunction',
      Resource: expect.stringMatching(/:function:kube-bootstrap-controller-prod-allocate$/),
    },
  ]);
});

describe('Refusals', () => {
  /** The messages on the page by code; `...` stands for any text. */
  const documented = new Map(
    [...reference.matchAll(/^\| `([A-Z]\w+)` \| ([^|]+) \|/gm)].map(([, code = '', says = '']) => [
      code,
      [...says.matchAll(/`([^`]+)`/g)].map(([, words = '']) => words.split('...')),
    ]),
  );
  const isDocumented = (code: string, message: string) =>
    (documented.get(code) ?? []).some((parts) => parts.every((part) => message.includes(part)));

  const ip = (value: string) => ({ range: 'serviceips' as const, value });
  const port = (value: number) => ({ range: 'servicenodeports' as const, value });
  const next = { range: 'serviceips' as const, next: true as const };

  const refusals: readonly {
    readonly code: string;
    readonly when: string;
    readonly request: Partial<AllocateRequest>;
    readonly options?: AllocateWorldOptions;
    readonly before?: (world: AllocateWorld) => Promise<unknown>;
  }[] = [
    {
      code: 'Full',
      when: 'nothing is free',
      request: { items: [next] },
      before: ({ store }) => store(RANGE_KEYS.primary, { data: fromBits(Array(254).keys()) }),
    },
    {
      code: 'AlreadyAllocated',
      when: 'an address is taken',
      request: { items: [ip('10.0.0.9'), ip('10.0.0.9')] },
    },
    { code: 'AlreadyAllocated', when: 'a port is taken', request: { items: [port(30_080), port(30_080)] } },
    { code: 'NotInRange', when: 'an address is outside', request: { items: [ip('10.1.0.1')] } },
    { code: 'NotInRange', when: 'a port is outside', request: { items: [port(80)] } },
    {
      code: 'NotReady',
      when: 'no pass has saved the range',
      request: { items: [next] },
      before: ({ store }) => store(RANGE_KEYS.primary, { generation: 0 }),
    },
    {
      code: 'MismatchedRange',
      when: 'another range is stored',
      request: { items: [next] },
      before: ({ store }) => store(RANGE_KEYS.primary, { range: '10.9.0.0/24' }),
    },
    {
      code: 'BadHold',
      when: 'its end is past',
      request: { items: [next], hold: { owner: 'shop', until: '2026-01-31T10:00:00Z' } },
    },
    {
      code: 'HoldsFull',
      when: 'there is no room for another',
      request: { items: [next] },
      before: ({ store }) => {
        const holds = Array.from({ length: 200 }, (_, index) => ({
          owner: 'shop',
          takenUpBy: 'any' as const,
          requestId: `${index}`.padEnd(500, 'x'),
          items: [`10.0.0.${index + 1}`],
        }));
        return store(RANGE_KEYS.primary, { data: fromBits(holds.keys()), holds });
      },
    },
    {
      code: 'RequestIdTaken',
      when: 'the id is that of another request',
      request: { items: [next] },
      before: (world) => world.ask({ items: [port(30_080)] }),
    },
    { code: 'NotRegistered', when: 'the name is another', request: { cluster: 'prod-eu-2', items: [next] } },
    {
      code: 'ObserveOnly',
      when: 'passes only observe',
      request: { items: [next] },
      options: { spec: { mode: 'observe' } },
    },
    {
      code: 'CallerRefused',
      when: 'the caller has no key',
      request: { items: [next] },
      options: { environment: { stack: 'ours' }, spec: { callerKeys: [] } },
    },
    {
      code: 'OtherStack',
      when: 'the cluster is of another stack',
      request: { items: [next] },
      options: { environment: { stack: 'ours' } },
      before: ownedByAnother,
    },
    {
      code: 'NoSecondaryRange',
      when: 'the cluster has one range',
      request: { items: [{ range: 'secondaryserviceips', next: true }] },
      options: { spec: { serviceClusterIPRanges: [PRIMARY] } },
    },
  ];

  test.each(refusals)('$code has the message of the page when $when', async ({ code, request, options, before }) => {
    const world = await theCluster(options);
    await before?.(world);
    const { error } = await world.ask(request);
    expect({ ...error, isDocumented: isDocumented(code, error?.message ?? '') }).toMatchObject({
      code,
      isDocumented: true,
    });
  });

  test('the page and the schema have the same codes', () => {
    const { error } = answerJsonSchema()['properties'] as Record<string, { description: string }>;
    const [, codes = ''] = error?.description.split(': ') ?? [];
    expect([...documented.keys()].toSorted()).toEqual(codes.match(/[A-Z]\w+/g)?.toSorted());
  });
});

describe('An error of the function', () => {
  /** The first words of an error on the page. */
  const words = (start: string) =>
    reference.match(new RegExp(`^- \`(${start}.*?) ?\\.\\.\\.\``, 'm'))?.[1] ?? 'not in the page';

  test('has the words of the page when the event is no request', async () => {
    const world = await theCluster();
    await expect(world.ask({ items: [] })).rejects.toThrow(words('The event'));
  });

  test('has the words of the page when the table throttles', async () => {
    const world = await theCluster();
    const busy = new TableError('Throttled', 'The table is busy.');
    const table = { ...world.table, put: () => Promise.reject(busy) };
    const request = { requestId: 'shop-7f3a', items: [{ range: 'serviceips' as const, next: true as const }] };
    await expect(world.ask(request, table)).rejects.toThrow(words('Throttled'));
    expect(await world.taken()).toEqual({});
  });
});

async function ownedByAnother({ table }: AllocateWorld): Promise<void> {
  const cluster = await readCluster(table, CLUSTER);
  const previous = await table.get('#clusters', CLUSTER);
  if (cluster === undefined) throw new Error('expected a cluster');
  const content = clusterContent({ ...cluster, owner: { stack: 'theirs' } });
  await table.put({ ...content, cluster: '#clusters', key: CLUSTER }, previous);
}

test('the static bands of the page are those of the code', () => {
  expect(text).toContain(`\`10.0.0.1\` to \`10.0.0.${reservedAddresses(2 ** 8)}\` of a /24`);
  expect(text).toContain(`${reservedAddresses(2 ** 16)} of a /16`);
  expect(text).toContain(`30000 to ${29_999 + reservedPorts(2768)} of the usual`);
  expect([reservedAddresses(16), reservedPorts(16)]).toEqual([0, 0]);
});
