import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { EndpointSubset } from '../../lib/endpoints/objects.ts';
import { repackSubsets } from '../../lib/endpoints/repack-subsets.ts';

/** `1.2.3.4`, or `1.2.3.4/uid` for an address that stands for something; `!` in front: not ready. */
function subset(addresses: string, ports: string): EndpointSubset {
  const all = addresses.split(' ').filter((text) => text !== '');
  const ready = all.filter((text) => !text.startsWith('!')).map(address);
  const notReady = all.filter((text) => text.startsWith('!')).map((text) => address(text.slice(1)));
  const named = ports.split(' ').filter((text) => text !== '');
  return {
    ...(ready.length > 0 && { addresses: ready }),
    ...(notReady.length > 0 && { notReadyAddresses: notReady }),
    ...(named.length > 0 && { ports: named.map(port) }),
  };
}

function address(text: string) {
  const [ip = '', uid] = text.split('/');
  return uid === undefined ? { ip } : { ip, targetRef: { uid } };
}

/** `a:93`. */
function port(text: string) {
  const [name = '', number] = text.split(':');
  return { name, port: Number(number) };
}

type Case = readonly [name: string, given: readonly EndpointSubset[], expected: readonly EndpointSubset[]];

const CASES: readonly Case[] = [
  ['nothing at all stays nothing', [subset('', '')], []],
  ['ports without an address disappear', [subset('', 'a:111')], []],
  ['an address without ports is kept', [subset('1.2.3.4', '')], [subset('1.2.3.4', '')]],
  ['an address that is not ready is kept without ports too', [subset('!1.2.3.4', '')], [subset('!1.2.3.4', '')]],
  ['one address and one port stay as they are', [subset('1.2.3.4', 'a:111')], [subset('1.2.3.4', 'a:111')]],
  [
    'one IPv6 address and one port stay as they are',
    [subset('beef::1:2:3:4', 'a:111')],
    [subset('beef::1:2:3:4', 'a:111')],
  ],
  ['one address that is not ready stays so', [subset('!1.2.3.4', 'a:111')], [subset('!1.2.3.4', 'a:111')]],
  ['a target is kept', [subset('1.2.3.4/uid-1', 'a:111')], [subset('1.2.3.4/uid-1', 'a:111')]],
  ['a target that is not ready is kept', [subset('!1.2.3.4/uid-1', 'a:111')], [subset('!1.2.3.4/uid-1', 'a:111')]],
  ['a target with an empty uid is kept', [subset('1.2.3.4/', 'a:111')], [subset('1.2.3.4/', 'a:111')]],
  [
    'a target with an empty uid that is not ready is kept',
    [subset('!1.2.3.4/', 'a:111')],
    [subset('!1.2.3.4/', 'a:111')],
  ],
  [
    'two addresses of one port stay together',
    [subset('1.2.3.4 5.6.7.8', 'a:111')],
    [subset('1.2.3.4 5.6.7.8', 'a:111')],
  ],
  [
    'a ready and a not ready address stay what they are',
    [subset('1.2.3.4 !5.6.7.8', 'a:111')],
    [subset('1.2.3.4 !5.6.7.8', 'a:111')],
  ],
  ['not ready wins over ready', [subset('1.2.3.4 !1.2.3.4', 'a:111')], [subset('!1.2.3.4', 'a:111')]],
  ['two ports of one address stay together', [subset('1.2.3.4', 'a:111 b:222')], [subset('1.2.3.4', 'a:111 b:222')]],
  ['a repeated address is merged', [subset('1.2.3.4 1.2.3.4', 'a:111')], [subset('1.2.3.4', 'a:111')]],
  ['a repeated IPv6 address is merged', [subset('beef::1 beef::1', 'a:111')], [subset('beef::1', 'a:111')]],
  [
    'the same address of two targets counts twice',
    [subset('1.2.3.4/uid-2 1.2.3.4/uid-1 1.2.3.4/uid-1', 'a:111')],
    [subset('1.2.3.4/uid-1 1.2.3.4/uid-2', 'a:111')],
  ],
  [
    'a target that is ready and not ready is not ready, the other target stays ready',
    [subset('1.2.3.4/uid-1 1.2.3.4/uid-2 !1.2.3.4/uid-1', 'a:111')],
    [subset('1.2.3.4/uid-2 !1.2.3.4/uid-1', 'a:111')],
  ],
  ['a repeated port is merged', [subset('1.2.3.4', 'a:111 a:111')], [subset('1.2.3.4', 'a:111')]],
  [
    'two sets with the same address and port become one',
    [subset('1.2.3.4', 'a:111'), subset('1.2.3.4', 'a:111')],
    [subset('1.2.3.4', 'a:111')],
  ],
  [
    'two sets that disagree about readiness become one that is not ready',
    [subset('1.2.3.4', 'a:111'), subset('!1.2.3.4', 'a:111')],
    [subset('!1.2.3.4', 'a:111')],
  ],
  [
    'two ports of the same address become one set',
    [subset('1.2.3.4', 'a:111'), subset('1.2.3.4', 'b:222')],
    [subset('1.2.3.4', 'a:111 b:222')],
  ],
  [
    'two ports of the same target become one set',
    [subset('1.2.3.4/uid-1', 'a:111'), subset('1.2.3.4/uid-1', 'b:222')],
    [subset('1.2.3.4/uid-1', 'a:111 b:222')],
  ],
  [
    'two ports of the same target, ready for one of them, stay two sets',
    [subset('1.2.3.4/uid-1', 'a:111'), subset('!1.2.3.4/uid-1', 'b:222')],
    [subset('!1.2.3.4/uid-1', 'b:222'), subset('1.2.3.4/uid-1', 'a:111')],
  ],
  [
    'two addresses of the same port become one set',
    [subset('1.2.3.4', 'a:111'), subset('5.6.7.8', 'a:111')],
    [subset('1.2.3.4 5.6.7.8', 'a:111')],
  ],
  [
    'two targets of the same address become one set of both',
    [subset('1.2.3.4/uid-1', 'a:111'), subset('1.2.3.4/uid-2', 'a:111')],
    [subset('1.2.3.4/uid-1 1.2.3.4/uid-2', 'a:111')],
  ],
  [
    'an address without a target comes before the same one with a target',
    [subset('1.2.3.4/uid-1', 'a:111'), subset('1.2.3.4', 'a:111')],
    [subset('1.2.3.4 1.2.3.4/uid-1', 'a:111')],
  ],
  [
    'addresses and targets that come in the wrong order are sorted',
    [
      subset('5.6.7.8', 'a:111'),
      subset('1.2.3.4/uid-2', 'a:111'),
      subset('1.2.3.4/uid-1', 'a:111'),
      subset('1.2.3.4', 'a:111'),
    ],
    [subset('1.2.3.4 1.2.3.4/uid-1 1.2.3.4/uid-2 5.6.7.8', 'a:111')],
  ],
  [
    'ready and not ready ones that come in the wrong order are sorted each for itself',
    [subset('!5.6.7.8 9.9.9.9', 'a:111'), subset('1.2.3.4/uid-1 !1.2.3.4', 'a:111')],
    [subset('1.2.3.4/uid-1 9.9.9.9 !1.2.3.4 !5.6.7.8', 'a:111')],
  ],
  [
    'different addresses with different ports stay two sets',
    [subset('1.2.3.4', 'a:111'), subset('5.6.7.8', 'b:222')],
    [subset('1.2.3.4', 'a:111'), subset('5.6.7.8', 'b:222')],
  ],
  [
    'jumbled sets are regrouped by who offers what',
    [subset('1.2.3.4', 'a:111'), subset('5.6.7.8', 'b:222'), subset('1.2.3.4', 'c:333'), subset('9.9.9.9', 'b:222')],
    [subset('1.2.3.4', 'a:111 c:333'), subset('5.6.7.8 9.9.9.9', 'b:222')],
  ],
  [
    'jumbled sets with not ready addresses are regrouped by who offers what how',
    [subset('!1.2.3.4', 'a:111'), subset('5.6.7.8', 'b:222'), subset('!1.2.3.4', 'c:333'), subset('!9.9.9.9', 'b:222')],
    [subset('!1.2.3.4', 'a:111 c:333'), subset('5.6.7.8 !9.9.9.9', 'b:222')],
  ],
];

describe('repacking subsets', () => {
  test.each(CASES)('%s', (_name, given, expected) => {
    expect(byContent(repackSubsets(given))).toEqual(byContent(expected));
  });

  test('the first record of an address is the one that is kept, whatever it carries', () => {
    const first = { ip: '1.2.3.4', nodeName: 'a', somethingNew: true };
    const repacked = repackSubsets([{ addresses: [first, { ip: '1.2.3.4', nodeName: 'b' }], ports: [port('a:111')] }]);
    expect(repacked).toEqual([{ addresses: [first], ports: [port('a:111')] }]);
  });

  // The order that the original's hash gives, taken from a run of it.
  test('ports come in the order of the hash of their printed form', () => {
    const https = { name: 'https', port: 6443, protocol: 'TCP' };
    const extra = { name: 'extra', port: 1000, protocol: 'TCP' };
    const udp = { name: 'udp', port: 53, protocol: 'UDP' };
    expect(repackSubsets([{ addresses: [{ ip: '10.0.0.1' }], ports: [https, extra, udp] }])).toEqual([
      { addresses: [{ ip: '10.0.0.1' }], ports: [udp, extra, https] },
    ]);
  });

  const anySubsets = fc.array(
    fc.record({
      addresses: fc.array(fc.constantFrom('1.2.3.4', '1.2.3.40', 'fd00::1', '1.2.3.4/u').map(address), {
        maxLength: 4,
      }),
      notReadyAddresses: fc.array(fc.constantFrom('1.2.3.4', '5.6.7.8/u').map(address), { maxLength: 2 }),
      ports: fc.array(fc.constantFrom('a:1', 'b:2', 'c:3').map(port), { maxLength: 3 }),
    }),
    { maxLength: 4 },
  );

  test('repacking what is repacked changes nothing', () => {
    fc.assert(
      fc.property(anySubsets, (subsets) => {
        const once = repackSubsets(subsets);
        expect(repackSubsets(once)).toEqual(once);
      }),
    );
  });

  test('the order of the given subsets does not matter', () => {
    fc.assert(
      fc.property(anySubsets, (subsets) => {
        expect(repackSubsets(subsets.toReversed())).toEqual(repackSubsets(subsets));
      }),
    );
  });
});

/** The order of ports and subsets is another test's: it is a hash's. */
function byContent(subsets: readonly EndpointSubset[]): unknown {
  const sorted = subsets.map(({ ports, ...rest }) => ({
    ...rest,
    ports: ports?.toSorted((one, other) => one.port - other.port),
  }));
  return sorted.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
}
