import { expect, test } from '@jest/globals';
import { describePublished, sameJson, samePort } from '../../lib/endpoints/objects.ts';
import { anEndpoints, aSlice, HTTPS } from '../support/an-endpoints.ts';

test.each<[unknown, unknown, boolean]>([
  [{ a: 1, b: [{ c: 'x' }] }, { b: [{ c: 'x' }], a: 1 }, true],
  [{ a: undefined }, {}, true],
  [{ a: null }, {}, true],
  [{ a: [] }, { a: null }, true],
  [{ a: {} }, { a: undefined }, true],
  [undefined, [], true],
  [{ a: 1 }, { a: 2 }, false],
  [{ a: 1 }, { a: 1, b: 1 }, false],
  [[1, 2], [2, 1], false],
  [[1], [1, 2], false],
  [[1], { 0: 1 }, false],
  ['', undefined, false],
  [0, null, false],
  [false, {}, false],
  ['1', 1, false],
])('sameJson compares %j and %j as the API does: %s', (one, other, same) => {
  expect([sameJson(one, other), sameJson(other, one)]).toEqual([same, same]);
});

test('samePort treats an absent name of a port like an empty name', () => {
  expect(samePort({ port: 1 }, { name: '', port: 1 })).toBe(true);
});

test.each([
  { name: 'Endpoints', object: anEndpoints(['10.0.0.1', '10.0.0.2']), text: ' with 10.0.0.1, 10.0.0.2 :6443' },
  { name: 'Endpoints without an address', object: anEndpoints([]), text: ' with no address' },
  { name: 'an EndpointSlice', object: aSlice(['10.0.0.1'], [HTTPS, { port: 1 }]), text: ' with 10.0.0.1 :6443 :1' },
  {
    name: 'an EndpointSlice with null lists',
    object: { ...aSlice([]), endpoints: null, ports: null },
    text: ' with no address',
  },
  { name: 'another object', object: { ...anEndpoints(['10.0.0.1']), kind: 'Service' }, text: '' },
])('describePublished returns "$text" for $name', ({ object, text }) => {
  expect(describePublished(object)).toBe(text);
});
