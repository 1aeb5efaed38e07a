import { describe, expect, test } from '@jest/globals';
import { checkServiceRanges } from '../../../cli/spec/network-rules.ts';
import { fault, type SpecFault } from '../../../cli/spec/spec-fault.ts';
import { readServiceRanges } from '../../../lib/cluster/spec-parts.ts';

function faultsOf(text: string | readonly string[], allocator: 'table' | 'apiserver' = 'apiserver'): SpecFault[] {
  const faults: SpecFault[] = [];
  checkServiceRanges({ serviceClusterIPRange: text, allocator }, (at, message) => void faults.push(fault(at, message)));
  return faults;
}

const messagesOf = (...given: Parameters<typeof faultsOf>) => faultsOf(...given).map(({ message }) => message);

const TOO_SMALL =
  'error determining service IP ranges for primary service cidr: the service cluster IP range must be at least 8 IP addresses';
const SAME_FAMILY = '--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family';

describe('the service address and ranges', () => {
  test.each([
    { text: '', ranges: ['10.0.0.0/24', undefined] },
    { text: '192.0.2.1/24', ranges: ['192.0.2.0/24', undefined] },
    { text: '192.0.2.1/24,192.168.128.0/17', ranges: ['192.0.2.0/24', '192.168.128.0/17'] },
    { text: '192.0.2.1/24,2001:db2:1:3:4::1/112', ranges: ['192.0.2.0/24', '2001:db2:1:3:4::/112'] },
    { text: '2001:db2:1:3:4::1/112,192.0.2.1/24', ranges: ['2001:db2:1:3:4::/112', '192.0.2.0/24'] },
  ])('the service address and ranges are read from "$text"', ({ text, ranges }) => {
    const { primary, secondary } = readServiceRanges(text);
    expect([primary?.text, secondary?.text]).toEqual(ranges);
  });

  test.each([
    { text: '192.0.2.1/30', message: TOO_SMALL },
    { text: '192.0.2.1/33,192.168.128.0/17', message: 'service-cluster-ip-range[0] is not a valid cidr' },
    { text: '192.0.2.1/24,192.168.128.0/33', message: 'service-cluster-ip-range[1] is not an ip net' },
    { text: '2001:db2:1:3:4::1/129,192.0.2.1/24', message: 'service-cluster-ip-range[0] is not a valid cidr' },
    { text: '192.0.2.1/24,2001:db2:1:3:4::1/129', message: 'service-cluster-ip-range[1] is not an ip net' },
    { text: '192.0.2.1,192.168.128.0/17', message: 'service-cluster-ip-range[0] is not a valid cidr' },
    { text: '192.0.2.1/24,192.168.128.1', message: 'service-cluster-ip-range[1] is not an ip net' },
    { text: '2001:db2:1:3:4::1,192.0.2.1/24', message: 'service-cluster-ip-range[0] is not a valid cidr' },
    { text: '192.0.2.1/24,2001:db2:1:3:4::1', message: 'service-cluster-ip-range[1] is not an ip net' },
    { text: 'bad.ip.range,192.168.0.2/24', message: 'service-cluster-ip-range[0] is not a valid cidr' },
    { text: '192.168.0.2/24,bad.ip.range', message: 'service-cluster-ip-range[1] is not an ip net' },
    { text: '10.0.0.0/24, fd00::/112', message: 'service-cluster-ip-range[1] is not an ip net' },
    { text: ',10.0.0.0/24', message: 'service-cluster-ip-range[0] is not a valid cidr' },
  ])('the service ranges "$text" are refused', ({ text, message }) => {
    expect(messagesOf(text)).toEqual([message]);
  });

  test('a small first range and a second one of its family are reported together', () => {
    expect(messagesOf('192.0.2.1/30,192.168.128.0/17')).toEqual([TOO_SMALL, SAME_FAMILY]);
  });

  test.each([
    { cidr: '10.0.0.0/29', enough: true },
    { cidr: '10.0.0.0/30', enough: false },
    { cidr: '2001:db8::/125', enough: true },
    { cidr: '2001:db8::/126', enough: false },
    { cidr: '10.0.0.0/2', enough: true },
    { cidr: '0.0.0.0/1', enough: false },
    { cidr: '::/1', enough: false },
    { cidr: '::/0', enough: false },
  ])('the check whether the range $cidr is large enough returns $enough', ({ cidr, enough }) => {
    expect(messagesOf(cidr)).toEqual(enough ? [] : [TOO_SMALL]);
  });
});

describe('the service cluster IP range', () => {
  const tooLarge = (bits: number, mask: number, index = '') =>
    `specified --service-cluster-ip-range${index} is too large; for ${bits}-bit addresses, the mask must be >= ${mask}`;

  test.each([
    {
      name: 'no range at all',
      text: [],
      messages: ['--service-cluster-ip-range must contain at least one valid cidr'],
    },
    { name: 'only a second one', text: ',10.0.0.0/16', messages: ['service-cluster-ip-range[0] is not a valid cidr'] },
    { name: 'two of IPv4', text: '10.0.0.0/16,11.0.0.0/16', messages: [SAME_FAMILY] },
    { name: 'two of IPv6', text: '2000::/108,3000::/108', messages: [SAME_FAMILY] },
    { name: 'IPv4 with 24 host bits', text: '10.0.0.0/8', messages: [tooLarge(32, 12)] },
    { name: 'IPv6 with 64 host bits', text: '2001:db8::/64', messages: [tooLarge(128, 108)] },
    { name: 'IPv6 with 116 host bits', text: '2001:db8::/12', messages: [tooLarge(128, 108)] },
    { name: 'a second with 64 host bits', text: '10.0.0.0/16,3000::/64', messages: [tooLarge(128, 108, '[1]')] },
    { name: 'a second with 80 host bits', text: '10.0.0.0/16,3000::/48', messages: [tooLarge(128, 108, '[1]')] },
    {
      name: 'three entries',
      text: '10.0.0.0/16,3000::/108,244.0.0.0/16',
      messages: ['--service-cluster-ip-range must not contain more than two entries'],
    },
    { name: 'one of IPv4', text: '10.0.0.0/16', messages: [] },
    { name: 'class E', text: '244.0.0.0/16', messages: [] },
    { name: 'IPv4 first', text: '10.0.0.0/16,3000::/108', messages: [] },
    { name: 'IPv6 first', text: '3000::/108,10.0.0.0/16', messages: [] },
  ])('the service range is checked where the table allocates: $name', ({ text, messages }) => {
    expect(messagesOf(text, 'table')).toEqual(messages);
  });

  test.each(['10.0.0.0/8', '2001:db8::/64', '2001:db8::/12', '10.0.0.0/16,3000::/48'])(
    'the range %s is accepted where the API servers allocate',
    (text) => {
      expect(messagesOf(text)).toEqual([]);
    },
  );

  test('a fault of a list names the wrong entry', () => {
    const faults = faultsOf(['10.0.0.0/24', '10.0.0.0']);
    expect(faults.map(({ path }) => path)).toEqual(['serviceClusterIPRange[1]']);
  });
});
