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
])('the API reads %j and %j as the same: %s', (one, other, same) => {
  expect([sameJson(one, other), sameJson(other, one)]).toEqual([same, same]);
});

test.each([
  { name: 'no name and an empty one', one: { port: 1 }, other: { name: '', port: 1 }, same: true },
  { name: 'no protocol and TCP', one: { port: 1 }, other: { port: 1, protocol: 'TCP' }, same: true },
  { name: 'TCP and UDP', one: { port: 1 }, other: { port: 1, protocol: 'UDP' }, same: false },
  { name: 'two names', one: { name: 'a', port: 1 }, other: { name: 'b', port: 1 }, same: false },
  { name: 'two numbers', one: { port: 1 }, other: { port: 2 }, same: false },
  { name: 'two protocols of applications', one: { port: 1 }, other: { port: 1, appProtocol: 'h2c' }, same: false },
])('ports with $name are the same: $same', ({ one, other, same }) => {
  expect(samePort(one, other)).toBe(same);
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
])('what $name publish is printed as "$text"', ({ object, text }) => {
  expect(describePublished(object)).toBe(text);
});
