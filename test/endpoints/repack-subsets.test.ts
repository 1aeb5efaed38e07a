import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { EndpointSubset } from '../../lib/endpoints/objects.ts';
import { repackSubsets } from '../../lib/endpoints/repack-subsets.ts';

/**
 * Subsets as a text: their addresses, then their ports, with ` | ` between two subsets. `1.2.3.4/uid` stands for something,
 * `!1.2.3.4` is not ready, `a:93` is a port.
 */
function subsets(text: string): EndpointSubset[] {
  return text.split(' | ').map((part) => {
    const words = part.split(' ').filter((word) => word !== '');
    const isPort = (word: string) => /^[a-z]:\d+$/.test(word);
    const ports = words.filter(isPort).map(port);
    const [notReady = [], ready = []] = [true, false].map((not) =>
      words
        .filter((word) => !isPort(word) && word.startsWith('!') === not)
        .map((word) => address(word.replace('!', ''))),
    );
    return {
      ...(ready.length > 0 && { addresses: ready }),
      ...(notReady.length > 0 && { notReadyAddresses: notReady }),
      ...(ports.length > 0 && { ports }),
    };
  });
}

function address(text: string) {
  const [ip = '', uid] = text.split('/');
  return uid === undefined ? { ip } : { ip, targetRef: { uid } };
}

function port(text: string) {
  const [name = '', number] = text.split(':');
  return { name, port: Number(number) };
}

describe('repacking subsets', () => {
  test.each(['', 'a:111'])('removes a subset without an address: "%s"', (text) => {
    expect(repackSubsets(subsets(text))).toEqual([]);
  });

  test.each([
    '1.2.3.4',
    '!1.2.3.4',
    '1.2.3.4 a:111',
    'beef::1:2:3:4 a:111',
    '!1.2.3.4 a:111',
    '1.2.3.4/uid-1 a:111',
    '!1.2.3.4/uid-1 a:111',
    '1.2.3.4/ a:111',
    '1.2.3.4 5.6.7.8 a:111',
    '1.2.3.4 !5.6.7.8 a:111',
    '1.2.3.4 a:111 b:222',
    '1.2.3.4 a:111 | 5.6.7.8 b:222',
    '!1.2.3.4/uid-1 b:222 | 1.2.3.4/uid-1 a:111',
  ])('leaves %s unchanged', (text) => {
    expect(byContent(repackSubsets(subsets(text)))).toEqual(byContent(subsets(text)));
  });

  test.each([
    ['1.2.3.4 !1.2.3.4 a:111', '!1.2.3.4 a:111'],
    ['1.2.3.4 1.2.3.4 a:111', '1.2.3.4 a:111'],
    ['beef::1 beef::1 a:111', 'beef::1 a:111'],
    ['1.2.3.4/uid-2 1.2.3.4/uid-1 1.2.3.4/uid-1 a:111', '1.2.3.4/uid-1 1.2.3.4/uid-2 a:111'],
    ['1.2.3.4/uid-1 1.2.3.4/uid-2 !1.2.3.4/uid-1 a:111', '1.2.3.4/uid-2 !1.2.3.4/uid-1 a:111'],
    ['1.2.3.4 a:111 a:111', '1.2.3.4 a:111'],
    ['1.2.3.4 a:111 | 1.2.3.4 a:111', '1.2.3.4 a:111'],
    ['1.2.3.4 a:111 | !1.2.3.4 a:111', '!1.2.3.4 a:111'],
    ['1.2.3.4 a:111 | 1.2.3.4 b:222', '1.2.3.4 a:111 b:222'],
    ['1.2.3.4/uid-1 a:111 | 1.2.3.4/uid-1 b:222', '1.2.3.4/uid-1 a:111 b:222'],
    ['1.2.3.4 a:111 | 5.6.7.8 a:111', '1.2.3.4 5.6.7.8 a:111'],
    ['1.2.3.4/uid-1 a:111 | 1.2.3.4/uid-2 a:111', '1.2.3.4/uid-1 1.2.3.4/uid-2 a:111'],
    ['1.2.3.4/uid-1 a:111 | 1.2.3.4 a:111', '1.2.3.4 1.2.3.4/uid-1 a:111'],
    [
      '5.6.7.8 a:111 | 1.2.3.4/uid-2 a:111 | 1.2.3.4/uid-1 a:111 | 1.2.3.4 a:111',
      '1.2.3.4 1.2.3.4/uid-1 1.2.3.4/uid-2 5.6.7.8 a:111',
    ],
    ['!5.6.7.8 9.9.9.9 a:111 | 1.2.3.4/uid-1 !1.2.3.4 a:111', '1.2.3.4/uid-1 9.9.9.9 !1.2.3.4 !5.6.7.8 a:111'],
    ['1.2.3.4 a:111 | 5.6.7.8 b:222 | 1.2.3.4 c:333 | 9.9.9.9 b:222', '1.2.3.4 a:111 c:333 | 5.6.7.8 9.9.9.9 b:222'],
    [
      '!1.2.3.4 a:111 | 5.6.7.8 b:222 | !1.2.3.4 c:333 | !9.9.9.9 b:222',
      '!1.2.3.4 a:111 c:333 | 5.6.7.8 !9.9.9.9 b:222',
    ],
  ])('makes of %s: %s', (given, expected) => {
    expect(byContent(repackSubsets(subsets(given)))).toEqual(byContent(subsets(expected)));
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
      fc.property(anySubsets, (given) => {
        const once = repackSubsets(given);
        expect(repackSubsets(once)).toEqual(once);
      }),
    );
  });

  test('the order of the given subsets does not matter', () => {
    fc.assert(
      fc.property(anySubsets, (given) => {
        expect(repackSubsets(given.toReversed())).toEqual(repackSubsets(given));
      }),
    );
  });
});

/** The order of ports and subsets is another test's: it is a hash's. */
function byContent(packed: readonly EndpointSubset[]): unknown {
  const sorted = packed.map(({ ports, ...rest }) => ({
    ...rest,
    ports: ports?.toSorted((one, other) => one.port - other.port),
  }));
  return sorted.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
}
