import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { reservedAddresses, reservedPorts } from '../../lib/allocator/range-allocator.ts';
import { ANSWER_SCHEMA } from '../../tools/json-schemas.ts';
import { anAllocateWorld, CLUSTER } from '../support/allocate-world.ts';
import { fencedBlocks } from '../support/console-blocks.ts';
import { filesInRepository, readInRepository } from '../support/repository.ts';
import { type Action, type Story, testPage } from './play-page.ts';

const SHOP = '/api/v1/namespaces/shop/services';
const BUILT_IN = 'kube-apiserver';
const ALL = ['203.0.113.10', '203.0.113.11', '203.0.113.12'];
const OLD_ONES = ALL.slice(1);
const nothing: Action = () => undefined;
const tick: Action = ({ tick }) => tick();

const STORIES: Readonly<Record<string, Story>> = {
  'address-conflict.md': {
    async begins(world) {
      await world.begin();
      world.restoreService('web', '10.0.0.77');
      world.restoreService('web-copy', '10.0.0.77');
      await world.tick();
    },
    elsewhere: {
      "kubectl get services -A --sort-by=.metadata.creationTimestamp -o 'custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,MADE:.metadata.creationTimestamp,IPS:.spec.clusterIPs' | grep -wF 10.0.0.77":
        nothing,
      'kubectl get ipaddress 10.0.0.77 -o yaml': nothing,
      'kubectl -n shop get service web-copy -o yaml > service.yaml': nothing,
      'kubectl -n shop delete service web-copy && kubectl -n shop annotate service web recorded-again=$RANDOM --overwrite':
        ({ call }) => call('DELETE', `${SHOP}/web-copy`),
      'kubectl create -f service.yaml': ({ call }) =>
        call('POST', SHOP, { metadata: { name: 'web-copy' }, spec: { ports: [{ port: 80 }] } }),
    },
  },

  'full-range.md': {
    async begins(world) {
      await world.begin({ serviceClusterIPRange: '10.0.0.0/27' });
      for (let last = 2; last <= 30; last++) world.restoreService(`stall-${last}`, `10.0.0.${last}`);
      await world.tick();
    },
    elsewhere: {
      'kubectl get services -A --sort-by=.metadata.creationTimestamp': nothing,
      'kubectl -n shop delete service stall-29 stall-30': async ({ call }) => {
        for (const last of [29, 30]) await call('DELETE', `${SHOP}/stall-${last}`);
      },
    },
  },

  'widening-a-cidr.md': {
    async begins(world) {
      await world.begin();
      for (let last = 2; last <= 220; last++) world.restoreService(`web-${last}`, `10.0.0.${last}`);
      await world.tick();
    },
    elsewhere: {
      '--service-cluster-ip-range=10.0.0.0/22': nothing,
      'vi prod-eu-1.yml': ({ writeSpec }) => writeSpec({ serviceClusterIPRange: '10.0.0.0/22' }),
      'kbctl cluster apply -f prod-eu-1.yml && kbctl run-once cluster-ip-repair prod-eu-1 && kbctl run-once node-port-repair prod-eu-1':
        nothing,
    },
  },

  'replacing-an-api-server.md': {
    async begins(world) {
      await world.begin();
      await world.apiServers.stop('203.0.113.12');
      await world.wait();
    },
    elsewhere: {
      'vi prod-eu-1.yml': ({ writeSpec, listed }) =>
        writeSpec({ apiServers: listed('203.0.113.10', '203.0.113.11', '203.0.113.13') }),
    },
    after: { 'kbctl cluster apply -f prod-eu-1.yml': tick },
  },

  'draining-an-api-server.md': {
    async begins(world) {
      await world.begin();
      await world.tick();
    },
    elsewhere: {
      'kbctl deregister prod-eu-1 203.0.113.12 --undo': nothing,
      'kbctl deregister prod-eu-1 203.0.113.12 && sleep 60 && systemctl stop kube-apiserver': async (world) => {
        await world.apiServers.stop('203.0.113.12');
        await world.tick();
      },
      'systemctl start kube-apiserver': async (world) => {
        await world.apiServers.start('203.0.113.12');
        await world.tick();
      },
    },
  },

  'reading-a-finding.md': {
    async begins(world) {
      await world.begin();
      world.restoreService('web', '10.0.0.77');
      world.restoreService('cart', '10.9.0.5');
      await world.tick();
    },
  },

  'moving-from-the-built-in-reconciler.md': {
    async begins(world) {
      await world.begin();
      await world.forget();
      await world.publish(BUILT_IN, ALL);
      world.writeSpec({ mode: 'observe' });
    },
    elsewhere: {
      // The restarted server removes its address, the loop adds it again, and the servers that still reconcile remove it.
      '--endpoint-reconciler-type=none': async (world) => {
        await world.publish(BUILT_IN, OLD_ONES);
        await world.tick(40_000);
        await world.publish(BUILT_IN, OLD_ONES);
        await world.tick(30_000);
        await world.publish(BUILT_IN, OLD_ONES.slice(1));
      },
      'systemctl kill -s KILL kube-apiserver': async (world) => {
        await world.apiServers.stop('203.0.113.12');
        await world.tick();
        await world.apiServers.start('203.0.113.12');
        await world.tick();
      },
      'kubectl -n default get endpoints kubernetes -o yaml --show-managed-fields': nothing,
    },
    after: {
      // The first pass claims the cluster for the stack.
      'kbctl cluster apply -f prod-eu-1.yml': async (world) => {
        await world.tick(10_000);
        await world.tick();
      },
      'kbctl cluster set-mode enforce prod-eu-1': tick,
    },
  },
};

const FOLDER = 'docs/tasks/';
const INDEX = `${FOLDER}README.md`;
const tasks = filesInRepository(FOLDER).filter((page) => page !== INDEX);

test('each task page has a test script, and each script has a page', () => {
  expect(tasks.map((page) => page.slice(FOLDER.length)).sort()).toEqual(Object.keys(STORIES).sort());
});

test('docs/tasks/README.md links to every page of the folder', () => {
  const named = [...readInRepository(INDEX).matchAll(/\]\(([a-z-]+\.md)\)/g)].map(([, page]) => page);
  expect(named.toSorted()).toEqual(Object.keys(STORIES).sort());
});

describe.each(Object.entries(STORIES))('docs/tasks/%s', (file, story) => testPage(`${FOLDER}${file}`, story));

const PAGE = 'docs/allocating.md';
const text = readInRepository(PAGE);
const reference = readInRepository('docs/allocate-reference.md');
const contentOf = (language: string) =>
  [...fencedBlocks(text), ...fencedBlocks(reference)]
    .filter((block) => block.language === language)
    .map(({ lines }) => lines.join('\n'));

const FUNCTION = 'kube-bootstrap-controller-prod-allocate:live';

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

describe(PAGE, () => testPage(PAGE, story));

test('each request in docs/allocating.md succeeds with the answer that the page shows', async () => {
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

test('docs/allocate-reference.md and the schema list the same refusal codes', () => {
  const documented = [...reference.matchAll(/^\| `([A-Z]\w+)` \|/gm)].map(([, code = '']) => code);
  const { error } = ANSWER_SCHEMA['properties'] as Record<string, { description: string }>;
  const [, codes = ''] = error?.description.split(': ') ?? [];
  expect(documented.toSorted()).toEqual(codes.match(/[A-Z]\w+/g)?.toSorted());
});

test('docs/allocating.md documents the same static bands as the code', () => {
  expect(text).toContain(`\`10.0.0.1\` to \`10.0.0.${reservedAddresses(2 ** 8)}\` of a /24`);
  expect(text).toContain(`${reservedAddresses(2 ** 16)} of a /16`);
  expect(text).toContain(`30000 to ${29_999 + reservedPorts(2768)} of the usual`);
  expect([reservedAddresses(16), reservedPorts(16)]).toEqual([0, 0]);
});
