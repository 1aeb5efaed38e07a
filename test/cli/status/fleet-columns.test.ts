import { describe, expect, test } from '@jest/globals';
import { fleetColumns } from '../../../cli/status/fleet-columns.ts';
import { RANGE_COLUMNS } from '../../../cli/status/status-lines.ts';
import { aClusterStatus, aSlash24, STATUS_AT_MS } from '../../support/a-fleet-status.ts';

describe('the line of a cluster', () => {
  const attentionTo = (...words: string[]) => {
    const attention = words.map((word) => ({ level: 'warning' as const, word, message: 'm', next: 'n' }));
    const column = fleetColumns(STATUS_AT_MS).find(({ title }) => title === 'ATTENTION');
    return column?.text(aClusterStatus({ attention }));
  };

  test('names what needs attention once, and how often', () => {
    expect(attentionTo('leak', 'duplicate', 'leak', 'leak')).toBe('leak (3),duplicate');
    expect(attentionTo()).toBe('');
  });
});

describe('the line of a range', () => {
  test('shows that something is in use, however little', () => {
    const column = RANGE_COLUMNS.find(({ title }) => title === 'FULL');
    expect(column?.text({ ...aSlash24(), used: 1, capacity: 2_768, usedPercent: 0 })).toMatch(/^▏ +0%$/);
    expect(column?.text({ ...aSlash24(), used: 0, capacity: 2_768, usedPercent: 0 })).toMatch(/^ +0%$/);
  });
});
