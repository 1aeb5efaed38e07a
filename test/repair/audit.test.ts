import { describe, expect, test } from '@jest/globals';
import { ipRangeOf } from '../../lib/allocator/ip-range.ts';
import { isRefused } from '../../lib/allocator/refusal.ts';
import { bitsOf } from '../../lib/allocator/snapshot-bytes.ts';
import { type AuditedRange, auditedCidr, auditedRange, auditRange } from '../../lib/repair/audit.ts';
import type { ClaimResult } from '../../lib/repair/claims.ts';
import { made, pickLowest, portRange } from '../support/ranges.ts';
import { service } from './services.ts';

const BY = service('s');
const WORDS = { item: 'cluster IP', range: 'service CIDR' };

function rangeOf(cidr: string): AuditedRange<string> {
  return made(auditedCidr(cidr, (text) => ipRangeOf(text, pickLowest)));
}

const codeOf = (result: ClaimResult) => (isRefused(result) ? result.code : result);

describe('membership in an audited network', () => {
  test.each([
    { address: '10.0.0.255', cidr: '10.0.0.0/24', why: 'the broadcast address', inside: false },
    { address: '10.0.0.0', cidr: '10.0.0.0/12', why: 'the network address of a large range', inside: false },
    { address: '10.15.255.254', cidr: '10.0.0.0/12', why: 'the last but one of a large range', inside: true },
    { address: '10.15.255.255', cidr: '10.0.0.0/12', why: 'the broadcast address of a large range', inside: false },
    { address: '10.16.0.0', cidr: '10.0.0.0/12', why: 'just above', inside: false },
    { address: '::ffff:10.1.2.3', cidr: '10.0.0.0/12', why: 'a mapped spelling', inside: true },
    { address: 'fd00::1', cidr: '10.0.0.0/12', why: 'another family', inside: false },
    { address: 'fd00::', cidr: 'fd00::/64', why: 'the network address of a large range', inside: false },
    { address: 'fd00::1:0', cidr: 'fd00::/64', why: 'beyond where a bitmap ends', inside: true },
    { address: 'fd00::ffff:ffff:ffff:ffff', cidr: 'fd00::/64', why: 'the last of a large range', inside: true },
    { address: 'fd00:0:0:1::', cidr: 'fd00::/64', why: 'just above', inside: false },
    { address: 'garbage', cidr: '10.0.0.0/12', why: 'no address', inside: false },
  ])('$address is inside $cidr: $inside ($why)', ({ address, cidr, inside }) => {
    expect(codeOf(rangeOf(cidr).claim(address, BY))).toBe(inside ? 'recorded' : 'NotInRange');
  });

  test.each([
    { cidr: '10.0.0.0/24', first: '10.0.0.5', again: '010.0.0.005' },
    { cidr: '10.0.0.0/12', first: '10.0.0.5', again: '::ffff:10.0.0.5' },
    { cidr: 'fd00::/64', first: 'fd00::2:0', again: 'FD00:0::2:0' },
  ])('the second claim on $first is a duplicate however it is spelled', ({ cidr, first, again }) => {
    const range = rangeOf(cidr);
    expect([first, again].map((text) => codeOf(range.claim(text, BY)))).toEqual(['recorded', 'AlreadyAllocated']);
    const { allocated, free, capacity } = range.counts();
    expect([allocated, capacity - free]).toEqual([1, 1]);
  });

  test('a text that is no network is refused', () => {
    expect(auditedCidr('garbage', (text) => ipRangeOf(text, pickLowest))).toMatchObject({ code: 'Unparsable' });
  });
});

describe('the audit of a range', () => {
  test.each([
    { cidr: '10.0.0.0/24', capacity: 254 },
    { cidr: '10.0.0.0/12', capacity: 1_048_574 },
    { cidr: 'fd00::/112', capacity: 65_535 },
    { cidr: 'fd00::/111', capacity: 131_071 },
    { cidr: 'fd00::/108', capacity: 1_048_575 },
    { cidr: 'fd00::/64', capacity: Number.MAX_SAFE_INTEGER },
  ])('the audit of a range counts what $cidr has room for', ({ cidr, capacity }) => {
    const { counts, findings } = auditRange(rangeOf(cidr), WORDS, undefined, 1);
    expect([counts, findings]).toEqual([{ allocated: 0, free: capacity, capacity }, []]);
  });

  test('the audit of a range keeps a usage bitmap of a range of 65,536 bits and less', () => {
    const range = rangeOf('10.0.0.0/24');
    range.claim('10.0.0.3', BY);
    expect(auditRange(range, WORDS, undefined, 4).next).toEqual({
      range: '10.0.0.0/24',
      data: Uint8Array.of(4),
      allocator: 'apiserver',
      generation: 4,
      strikes: { once: new Uint8Array(0), twice: new Uint8Array(0) },
      holds: [],
      unclaimed: [],
    });
  });

  test.each(['10.0.0.0/15', 'fd00::/108'])('the audit keeps no usage bitmap of the larger %s', (cidr) => {
    expect(auditRange(rangeOf(cidr), WORDS, undefined, 1).next).toBeUndefined();
  });

  test('the audit of a range keeps a usage bitmap of every port', () => {
    const range = auditedRange(portRange('0-65535'));
    range.claim(65_535, BY);
    expect([...bitsOf(auditRange(range, WORDS, undefined, 1).next?.data ?? new Uint8Array(0))]).toEqual([65_535]);
  });
});
