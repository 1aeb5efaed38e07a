import { networkInterfaces } from 'node:os';
import { expect, test } from '@jest/globals';
import { readHostNetwork } from '../../local/host-network.ts';

test('the network of this host has every address that the operating system lists, on an interface that is up', () => {
  const { interfaces } = readHostNetwork();
  const addresses = interfaces.filter(({ up }) => up).flatMap((own) => own.addresses);
  const shown = Object.values(networkInterfaces()).flatMap((own = []) => own.map(({ cidr }) => cidr));
  expect(addresses.sort()).toEqual(shown.sort());
});

test('the network of this host has its loopback marked as such', () => {
  const internal = Object.values(networkInterfaces()).flatMap((own = []) =>
    own.filter((one) => one.internal).map(({ cidr }) => cidr),
  );
  const loopbacks = readHostNetwork().interfaces.filter(({ loopback }) => loopback);
  expect(loopbacks.flatMap((own) => own.addresses)).toEqual(expect.arrayContaining(internal));
});

test('the network of this host has each interface once', () => {
  const names = readHostNetwork().interfaces.map(({ name }) => name);
  expect(names).toEqual([...new Set(names)]);
});
