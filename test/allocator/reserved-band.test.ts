import { describe, expect, test } from '@jest/globals';
import { parseCidr, rangeSize } from '../../lib/allocator/network.ts';
import { reservedAddresses, reservedPorts } from '../../lib/allocator/reserved-band.ts';

describe('The reserved band', () => {
  test.each([
    { cidr: '192.168.1.0/32', band: 0 },
    { cidr: '192.168.1.0/30', band: 0 },
    { cidr: '192.168.1.0/28', band: 0 },
    { cidr: '192.168.1.0/27', band: 16 },
    { cidr: '192.168.1.0/25', band: 16 },
    { cidr: '192.168.1.0/24', band: 16 },
    { cidr: '192.168.0.0/23', band: 32 },
    { cidr: '192.168.0.0/22', band: 64 },
    { cidr: '192.168.0.0/20', band: 256 },
    { cidr: '10.0.0.0/8', band: 256 },
    { cidr: '0.0.0.0/1', band: 0 },
    { cidr: '0.0.0.0/0', band: 0 },
    { cidr: '2001:db8::/128', band: 0 },
    { cidr: '2001:db8::/126', band: 0 },
    { cidr: '2001:db8::/124', band: 0 },
    { cidr: '2001:db8::/122', band: 16 },
    { cidr: '2001:db8::/118', band: 64 },
    { cidr: '2001::/12', band: 256 },
  ])('of $cidr has $band addresses', ({ cidr, band }) => {
    const network = parseCidr(cidr);
    expect(network && reservedAddresses(Number(rangeSize(network)))).toBe(band);
  });

  test.each([
    { ports: 2768, band: 86 },
    { ports: 10, band: 0 },
    { ports: 16, band: 0 },
    { ports: 17, band: 16 },
    { ports: 128, band: 16 },
    { ports: 543, band: 16 },
    { ports: 2048, band: 64 },
    { ports: 4096, band: 128 },
    { ports: 8192, band: 128 },
  ])('of $ports ports has $band', ({ ports, band }) => {
    expect(reservedPorts(ports)).toBe(band);
  });
});
