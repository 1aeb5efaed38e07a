import { beforeAll, describe, expect, test } from '@jest/globals';
import { ENDS } from '../support/cut-calls.ts';
import { PASSES } from './passes.ts';
import { ALLOCATIONS, DEREGISTRATIONS, REVIEWS } from './requests.ts';
import { runUncut, type Subject, sweep, type Uncut } from './sweep.ts';

const ended = 'if one call %s, repeating the invocation leads to the same state as a run without faults';

function swept<World>(subjects: readonly Subject<World>[]): void {
  describe.each(subjects)('$what', (subject) => {
    let uncut: Uncut;
    beforeAll(async () => {
      uncut = await runUncut(subject);
    });

    test('an invocation without a fault makes calls other than list', () => {
      expect(uncut.calls.filter((call) => call !== 'list')).not.toEqual([]);
    });

    test.each(Object.entries(ENDS))(ended, async (_, end) => {
      const { cuts, differences } = await sweep(subject, end, uncut);
      expect(differences).toEqual([]);
      expect(cuts).toBeGreaterThanOrEqual(end === 'failedBefore' ? 2 : 0);
    });
  });
}

describe('A pass', () => swept(PASSES));
describe('A request to allocate or release', () => swept(ALLOCATIONS));
describe('A deregistration', () => swept(DEREGISTRATIONS));
describe('An admission review', () => swept(REVIEWS));
