import { describe, expect, test } from '@jest/globals';
import { parsePortInterval, portIntervalText } from '../../lib/allocator/port-range.ts';
import { isRefused } from '../../lib/allocator/refusal.ts';
import { portRange } from '../support/ranges.ts';

/* The golden cases test the operations of a range of node ports, and the most common texts of port ranges. */

describe('A range of node ports', () => {
  const OUTSIDE = ['1', '20000', '10201', '9999', '-2', '10000.5', 'NaN'];
  test.each(OUTSIDE)('the ports 10000 to 10200 do not contain %s', (port) => {
    const range = portRange('10000-10200');
    range.release(port);
    const message = 'provided port is not in the valid range. The range of valid ports is 10000-10200';
    expect(range.allocate(port)).toMatchObject({ code: 'NotInRange', message });
    expect([range.has(port), range.indexOf(port), range.used]).toEqual([false, undefined, 0]);
  });

  test('a range of zero ports is full', () => {
    expect(portRange('').allocateNext()).toMatchObject({ code: 'Full', message: 'range is full' });
  });
});

describe('A port range', () => {
  test.each([
    { text: '65535', base: 65_535, size: 1, shown: '65535-65535' },
    { text: '5++3', base: 5, size: 4, shown: '5-8' },
    { text: ' \t80-90\n', base: 80, size: 11, shown: '80-90' },
    { text: '  ', base: 0, size: 0, shown: '' },
  ])('the port range "$text" has $size ports from $base, and is printed as "$shown"', ({ text, base, size, shown }) => {
    const interval = parsePortInterval(text);
    expect(interval).toEqual({ base, size });
    expect(isRefused(interval) ? undefined : portIntervalText(interval)).toBe(shown);
  });

  test.each([
    { text: '80-', message: 'strconv.Atoi: parsing "": invalid syntax' },
    { text: '+80', message: 'strconv.Atoi: parsing "": invalid syntax' },
    { text: '0x50', message: 'strconv.Atoi: parsing "0x50": invalid syntax' },
    { text: '99999999999999999999', message: 'strconv.Atoi: parsing "99999999999999999999": value out of range' },
    { text: '1-2+3', message: 'unable to parse port range: 1-2+3' },
    { text: '+1-3', message: 'unable to parse port range: +1-3' },
    { text: '9223372036854775808', message: 'strconv.Atoi: parsing "9223372036854775808": value out of range' },
    { text: '65536', message: 'the port range cannot be greater than 65535: 65536' },
    { text: '65535+1', message: 'the port range cannot be greater than 65535: 65535+1' },
    { text: '5--3', message: 'end port cannot be less than start port: 5--3' },
  ])('"$text" is not a port range: $message', ({ text, message }) => {
    expect(parsePortInterval(text)).toMatchObject({ code: 'Unparsable', message });
  });
});
