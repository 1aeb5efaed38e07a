import { AllocatorError } from '../allocator/errors.ts';
import type { LookedUp } from '../table/range-draft.ts';
import { type Answer, type AnsweredItem, done, errorOf, refused, shownHold } from './answer.ts';
import { askEach, type Job, type WantedRange } from './job.ts';

/** How each item stands. Reads alone: nothing of it is recorded. */
export async function lookUpItems({ request, wanted, ranges }: Job): Promise<Answer> {
  const answers = await askEach(ranges, async (each) => {
    const looked = await each.range.lookUp(each.wanted.map(({ value }) => value ?? ''));
    return looked instanceof AllocatorError ? looked : { each, looked };
  });
  if (answers instanceof AllocatorError) return refused(request, wanted, answers);
  const items: AnsweredItem[] = [];
  for (const { each, looked } of answers) {
    for (const [place, { index, value = '' }] of each.wanted.entries()) {
      items[index] = answered(each, value, looked[place] ?? { inRange: false });
    }
  }
  return done(request, items);
}

function answered({ name, range }: WantedRange, value: string | number, looked: LookedUp): AnsweredItem {
  const item = range.itemOf(value);
  if (item instanceof AllocatorError || !looked.inRange) {
    return { range: name, value, outcome: 'notInRange', ...(item instanceof Error && { error: errorOf(item) }) };
  }
  const { taken, hold, strikes, band } = looked;
  const outcome = taken ? 'taken' : 'free';
  return { range: name, value: item, outcome, ...(hold && { hold: shownHold(hold) }), strikes, band };
}
