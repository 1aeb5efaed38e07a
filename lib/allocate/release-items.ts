import { AllocatorError } from '../allocator/errors.ts';
import { type Answer, type AnsweredItem, done, errorOf } from './answer.ts';
import type { Job, WantedRange } from './job.ts';
import type { ItemValue } from './request.ts';

/** Releases range after range. What is free, or not in the range, is left as it is. */
export async function releaseItems({ request, ranges }: Job): Promise<Answer> {
  const items: AnsweredItem[] = [];
  let refusal: AllocatorError | undefined;
  for (const each of ranges) {
    const given = await each.range.giveBack(each.wanted.map(({ value }) => value ?? ''));
    if (given instanceof AllocatorError) refusal ??= given;
    const released = new Set(given instanceof AllocatorError ? [] : given.released);
    for (const { index, value = '' } of each.wanted) {
      const { name } = each;
      items[index] =
        given instanceof AllocatorError
          ? { range: name, value, outcome: 'refused', error: errorOf(given) }
          : releasedItem(each, value, released);
    }
  }
  const answer = done(request, items);
  return refusal === undefined ? answer : { ...answer, outcome: 'refused', error: errorOf(refusal) };
}

/**
 * The answer when an earlier invocation began and did not come to its end. It is not run again: what it released may be
 * somebody else's by now, and what it did not release is a leak, which the repair loops free.
 */
export function releasedOrNot({ request, wanted }: Job): Answer {
  const items = wanted.map((each): AnsweredItem => ({ ...each, outcome: 'unknown' }));
  return done(request, items);
}

/** An item that was asked for twice is released once. */
function releasedItem({ name, range }: WantedRange, value: ItemValue, released: Set<ItemValue>): AnsweredItem {
  const item = range.itemOf(value);
  if (item instanceof AllocatorError) return { range: name, value, outcome: 'notInRange' };
  return { range: name, value: item, outcome: released.delete(item) ? 'released' : 'free' };
}
