import { describe, expect, test } from '@jest/globals';
import { pages } from '../support/console-blocks.ts';
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
const texts = pages();
const tasks = [...texts].filter(([page]) => page.startsWith(FOLDER) && page !== INDEX);

test('each task page has a test script, and each script has a page', () => {
  expect(tasks.map(([page]) => page.slice(FOLDER.length)).sort()).toEqual(Object.keys(STORIES).sort());
});

test('the index links to every page', () => {
  const named = [...(texts.get(INDEX) ?? '').matchAll(/\]\(([a-z-]+\.md)\)/g)].map(([, page]) => page);
  expect(named.toSorted()).toEqual(Object.keys(STORIES).sort());
});

describe.each(Object.entries(STORIES))('docs/tasks/%s', (file, story) => {
  const page = `${FOLDER}${file}`;
  testPage(page, texts.get(page) ?? '', story);
});
