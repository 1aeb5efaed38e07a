import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { EndpointSubset } from '../../lib/cluster/published-objects.ts';
import { repackedAddresses, repackSubsets } from '../../lib/cluster/repack-subsets.ts';

/**
 * Returns the subsets that a text describes. A subset has addresses, then ports. ` | ` separates two subsets. `1.2.3.4/uid` has a
 * target with that uid, `!1.2.3.4` is not ready, and `a:93` is a port.
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
  test.each(['', 'a:111'])('repacking removes a subset without an address: "%s"', (text) => {
    expect(repackSubsets(subsets(text))).toEqual([]);
  });

  test.each([
    '!1.2.3.4',
    '1.2.3.4/ a:111',
    '1.2.3.4 5.6.7.8 a:111',
    '1.2.3.4 !5.6.7.8 a:111',
    '1.2.3.4 a:111 | 5.6.7.8 b:222',
    '!1.2.3.4/uid-1 b:222 | 1.2.3.4/uid-1 a:111',
  ])('repacking keeps the subsets "%s"', (text) => {
    expect(byContent(repackSubsets(subsets(text)))).toEqual(byContent(subsets(text)));
  });

  test.each([
    ['1.2.3.4 !1.2.3.4 a:111', '!1.2.3.4 a:111'],
    ['1.2.3.4/uid-2 1.2.3.4/uid-1 1.2.3.4/uid-1 a:111', '1.2.3.4/uid-1 1.2.3.4/uid-2 a:111'],
    ['1.2.3.4/uid-1 1.2.3.4/uid-2 !1.2.3.4/uid-1 a:111', '1.2.3.4/uid-2 !1.2.3.4/uid-1 a:111'],
    ['1.2.3.4 a:111 | 1.2.3.4 a:111', '1.2.3.4 a:111'],
    ['1.2.3.4 a:111 | !1.2.3.4 a:111', '!1.2.3.4 a:111'],
    ['1.2.3.4/uid-1 a:111 | 1.2.3.4 a:111', '1.2.3.4 1.2.3.4/uid-1 a:111'],
    ['5.6.7.8 a:1 | 1.2.3.4/u-2 a:1 | 1.2.3.4/u-1 a:1 | 1.2.3.4 a:1', '1.2.3.4 1.2.3.4/u-1 1.2.3.4/u-2 5.6.7.8 a:1'],
    ['!5.6.7.8 9.9.9.9 a:111 | 1.2.3.4/uid-1 !1.2.3.4 a:111', '1.2.3.4/uid-1 9.9.9.9 !1.2.3.4 !5.6.7.8 a:111'],
    ['1.2.3.4 a:111 | 5.6.7.8 b:222 | 1.2.3.4 c:333 | 9.9.9.9 b:222', '1.2.3.4 a:111 c:333 | 5.6.7.8 9.9.9.9 b:222'],
    ['!1.2.3.4 a:1 | 5.6.7.8 b:2 | !1.2.3.4 c:3 | !9.9.9.9 b:2', '!1.2.3.4 a:1 c:3 | 5.6.7.8 !9.9.9.9 b:2'],
  ])('repacking changes %s to: %s', (given, expected) => {
    expect(byContent(repackSubsets(subsets(given)))).toEqual(byContent(subsets(expected)));
  });

  test('if a subset contains an address twice, repacking keeps the first entry with all its fields', () => {
    const first = { ip: '1.2.3.4', nodeName: 'a', somethingNew: true };
    const repacked = repackSubsets([{ addresses: [first, { ip: '1.2.3.4', nodeName: 'b' }], ports: [port('a:111')] }]);
    expect(repacked).toEqual([{ addresses: [first], ports: [port('a:111')] }]);
  });

  // The test builds the printed form of each subset as the Go package spew does.
  test('repacking sorts subsets by the hash of their printed form, which contains every field', () => {
    const ref = (n: number) => ({ kind: `K${n}`, namespace: 'ns', name: `n${n}`, uid: `u${n}`, apiVersion: 'v1' });
    const given = Array.from({ length: 24 }, (_, n) => {
      const named = { ip: `10.0.0.${n}`, hostname: `h${n}`, nodeName: `node${n}` };
      const targetRef = n % 2 === 0 ? ref(n) : { resourceVersion: `${n}`, fieldPath: `f${n}` };
      const addresses = n % 3 === 0 ? [{ ip: `10.0.0.${n}` }] : [{ ...named, targetRef }, { ip: `10.0.1.${n}` }];
      const ports = n % 4 === 0 ? [{ port: n }] : [{ name: `p${n}`, port: n, protocol: 'TCP' }];
      return n % 5 === 0 ? { notReadyAddresses: addresses, ports } : { addresses, ports };
    });
    const printed = given.map((subset, n) => {
      const [kind, name, uid] = n % 2 === 0 ? [`K${n}`, `n${n}`, `u${n}`] : ['', '', ''];
      const [namespace, apiVersion, version, path] = n % 2 === 0 ? ['ns', 'v1', '', ''] : ['', '', `${n}`, `f${n}`];
      const reference = `{Kind:(string)${kind} Namespace:(string)${namespace} Name:(string)${name} UID:(types.UID)${uid} APIVersion:(string)${apiVersion} ResourceVersion:(string)${version} FieldPath:(string)${path}}`;
      const bare = (ip: string) =>
        `{IP:(string)${ip} Hostname:(string) NodeName:(*string)<nil> TargetRef:(*v1.ObjectReference)<nil>}`;
      const named = `{IP:(string)10.0.0.${n} Hostname:(string)h${n} NodeName:(*string)node${n} TargetRef:(*v1.ObjectReference)${reference}}`;
      const both = `${named} ${bare(`10.0.1.${n}`)}`;
      const list = `([]v1.EndpointAddress)[${n % 3 === 0 ? bare(`10.0.0.${n}`) : both}]`;
      const none = '([]v1.EndpointAddress)<nil>';
      const [ready, notReady] = n % 5 === 0 ? [none, list] : [list, none];
      const [portName, protocol] = n % 4 === 0 ? ['', ''] : [`p${n}`, 'TCP'];
      const port = `{Name:(string)${portName} Port:(int32)${n} Protocol:(v1.Protocol)${protocol} AppProtocol:(*string)<nil>}`;
      const text = `(v1.EndpointSubset){Addresses:${ready} NotReadyAddresses:${notReady} Ports:([]v1.EndpointPort)[${port}]}`;
      return { text, subset };
    });
    const inOrder = printed.toSorted((one, other) => (fnv(one.text) < fnv(other.text) ? -1 : 1));
    expect(repackSubsets(given)).toEqual(inOrder.map(({ subset }) => subset));
    expect(repackedAddresses(given)).toBe(
      given.flatMap(({ addresses, notReadyAddresses }) => addresses ?? notReadyAddresses).length,
    );
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

  test('repacking has the same result for any order of the given subsets', () => {
    fc.assert(
      fc.property(anySubsets, (given) => {
        expect(repackSubsets(given.toReversed())).toEqual(repackSubsets(given));
      }),
    );
  });
});

/** Returns the 128-bit FNV-1a hash of a text. */
function fnv(text: string): bigint {
  const add = (hash: bigint, byte: number) => ((hash ^ BigInt(byte)) * (2n ** 88n + 0x13bn)) % 2n ** 128n;
  return [...Buffer.from(text)].reduce(add, 0x6c62272e07bb014262b821756295c58dn);
}

/** Returns the subsets in the order of their content, because another test checks their order by hash. */
function byContent(packed: readonly EndpointSubset[]): unknown {
  const sorted = packed.map(({ ports, ...rest }) => ({
    ...rest,
    ports: ports?.toSorted((one, other) => one.port - other.port),
  }));
  return sorted.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
}
