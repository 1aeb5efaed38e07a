import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { reservedAddresses, reservedPorts } from '../../lib/allocator/range-allocator.ts';
import { answerJsonSchema } from '../../tools/json-schemas.ts';
import { anAllocateWorld, CLUSTER } from '../support/allocate-world.ts';
import { fencedBlocks } from '../support/console-blocks.ts';
import { readInRepository } from '../support/repository.ts';
import { type Action, type Story, testPage } from './play-page.ts';

const PAGE = 'docs/allocating.md';
const text = readInRepository(PAGE);
const reference = readInRepository('docs/allocate-reference.md');
const blocks = fencedBlocks(text);
const contentOf = (language: string) =>
  [...blocks, ...fencedBlocks(reference)]
    .filter((block) => block.language === language)
    .map(({ lines }) => lines.join('\n'));

const SHOP = '/api/v1/namespaces/shop/services';
const FUNCTION = 'kube-bootstrap-controller-prod-allocate:live';
const nothing: Action = () => undefined;

const [serviceFile = ''] = contentOf('yaml');

/** The story of a cluster that allocates through the table and has one Service. */
const story: Story = {
  async begins(world) {
    world.allocateBy(world.tableAllocation);
    await world.begin({ allocator: 'table' });
    await world.tick();
    const web = { clusterIP: '10.0.0.77', ports: [{ port: 80 }] };
    await world.call('POST', SHOP, { metadata: { name: 'web' }, spec: web });
    await world.tick();
  },
  random: {
    'kbctl allocate ip prod-eu-1 --hold 1h --owner shop': /^10\.0\.0\.\d+$/m,
    'kbctl get holds prod-eu-1': /10\.0\.0\.(?!9$)\d+$/m,
  },
  elsewhere: {
    [`aws lambda invoke --function-name ${FUNCTION} --payload file://request.json --cli-binary-format raw-in-base64-out answer.json`]:
      nothing,
    [`cd examples && go run . ${FUNCTION} prod-eu-1 shop-7f3a`]: nothing,
    [`python examples/allocate.py ${FUNCTION} prod-eu-1 shop-7f3a`]: nothing,
    'kubectl apply -f edge.yaml': ({ call }) => call('POST', SHOP, parse(serviceFile) as object),
  },
};

describe('the console blocks of allocating.md', () => testPage(PAGE, text, story));

test('each request on the page succeeds with the answer that the page shows', async () => {
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

test('the reference page and the schema list the same refusal codes', () => {
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
