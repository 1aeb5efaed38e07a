import { popCount } from '../../lib/allocator/snapshot-bytes.ts';
import type { Hold } from '../../lib/cluster/hold.ts';
import type { ImportPreview } from '../../lib/exchange/import-ranges.ts';
import type { ImportPlan } from '../../lib/exchange/plan-import.ts';
import type { Output, Plain } from '../output.ts';
import type { Style } from '../terminal.ts';
import { itemsIn, itemsText, nameOfKey } from './range-words.ts';

/** What an import makes of each range, for a person. */
export function importLines({ plans }: ImportPreview, paint: Output['paint']): string[] {
  return plans.flatMap((plan) => [paint('bold', `${nameOfKey(plan.key)} ${plan.range}`), ...rangeLines(plan, paint)]);
}

export function plainImport({ plans, warnings, changes }: ImportPreview): { readonly [field: string]: Plain } {
  return {
    changes,
    warnings: [...warnings],
    ranges: plans.map((plan) => ({
      key: plan.key,
      range: plan.range,
      toSet: itemsIn(plan.range, plan.toSet),
      alreadySet: itemsIn(plan.range, plan.alreadySet),
      onlyHere: itemsIn(plan.range, plan.onlyHere),
      strikesCleared: itemsIn(plan.range, plan.struck),
      holds: plan.holds.map(({ items, owner, untilMs, takenUpBy, requestId }) => ({
        items: [...items],
        owner,
        until: untilMs === undefined ? undefined : new Date(untilMs).toISOString(),
        takenUpBy,
        requestId,
      })),
      holdsLeftOut: plan.holdsLeftOut,
    })),
  };
}

function rangeLines(plan: ImportPlan, paint: Output['paint']): string[] {
  const line = (title: string, bits: Uint8Array, style?: Style): string => {
    const text =
      `  ${title.padEnd(12)} ${String(popCount(bits)).padStart(6)}  ${itemsText(plan.range, bits)}`.trimEnd();
    return style === undefined || popCount(bits) === 0 ? text : paint(style, text);
  };
  return [
    line('to set', plan.toSet, 'green'),
    line('set already', plan.alreadySet),
    line('only here', plan.onlyHere),
    ...(popCount(plan.struck) === 0 ? [] : [line('no leaks now', plan.struck)]),
    ...plan.holds.map(holdLine),
    ...(plan.holdsLeftOut === 0
      ? []
      : [`  held in the file and not here: ${plan.holdsLeftOut}, taken already or with a hold that is over`]),
  ];
}

function holdLine({ items, owner, untilMs }: Hold): string {
  const until = untilMs === undefined ? 'for good' : `until ${new Date(untilMs).toISOString()}`;
  return `  held         ${String(items.length).padStart(6)}  by ${owner} ${until}`;
}
