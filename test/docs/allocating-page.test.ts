import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { reservedAddresses, reservedPorts } from '../../lib/allocator/range-allocator.ts';
import { startTableServer, type TableServer } from '../../local/table-server.ts';
import { answerJsonSchema } from '../../tools/json-schemas.ts';
import { anAllocateWorld, CLUSTER } from '../support/allocate-world.ts';
import { fencedBlocks } from '../support/console-blocks.ts';
import { allocatingStory } from './allocating-story.ts';
import { playBlock } from './play-page.ts';
import { openTaskWorld, type TaskWorld } from './task-world.ts';

const PAGE = 'docs/allocating.md';
const read = (page: string) => readFileSync(join(import.meta.dirname, '../..', page), 'utf8');
const text = read(PAGE);
const reference = read('docs/allocate-reference.md');
const blocks = fencedBlocks(text);
const contentOf = (language: string) =>
  [...blocks, ...fencedBlocks(reference)]
    .filter((block) => block.language === language)
    .map(({ lines }) => lines.join('\n'));

describe('the console blocks of allocating.md', () => {
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

  test('every command prints the output on the page', async () => {
    expect(blocks.length).toBeGreaterThan(5);
    for (const block of blocks) await playBlock(PAGE, block, story, world);
  });

  test('the page contains every command of its story', () => {
    const commands = [...Object.keys(story.elsewhere ?? {}), ...Object.keys(story.random ?? {})];
    expect(commands.filter((command) => !text.includes(command))).toEqual([]);
  });
});

test('each request on the pages succeeds with the answer on the page', async () => {
  const shown = contentOf('json').map((block) => JSON.parse(block.replaceAll('prod-eu-1', CLUSTER)) as object);
  const exchanges = shown.flatMap((request, index) =>
    'operation' in request && !('outcome' in request) ? [{ request, answer: shown[index + 1] }] : [],
  );
  // The time is an hour before the end of the first hold on the page.
  const clock = { nowMs: Date.parse('2026-01-31T11:00:00Z') };
  const world = await anAllocateWorld({ clock, spec: { serviceNodePortRange: '30000-32767' } });
  for (const { request, answer } of exchanges)
    expect(await world.send(request)).toEqual(answer ?? expect.objectContaining({ outcome: 'done' }));
  expect(exchanges).toHaveLength(2);
});

test('the reference and the schema have the same codes of refusals', () => {
  const documented = [...reference.matchAll(/^\| `([A-Z]\w+)` \|/gm)].map(([, code = '']) => code);
  const { error } = answerJsonSchema()['properties'] as Record<string, { description: string }>;
  const [, codes = ''] = error?.description.split(': ') ?? [];
  expect(documented.toSorted()).toEqual(codes.match(/[A-Z]\w+/g)?.toSorted());
});

test('the page documents the same static bands as the code', () => {
  expect(text).toContain(`\`10.0.0.1\` to \`10.0.0.${reservedAddresses(2 ** 8)}\` of a /24`);
  expect(text).toContain(`${reservedAddresses(2 ** 16)} of a /16`);
  expect(text).toContain(`30000 to ${29_999 + reservedPorts(2768)} of the usual`);
  expect([reservedAddresses(16), reservedPorts(16)]).toEqual([0, 0]);
});
