import { boundedText } from '../cluster/values.ts';
import type { Fields, FieldValue } from './telemetry.ts';

const LONGEST_TEXT = 1_000;
/** A tenth of what CloudWatch takes as one event: a line that it cuts is JSON no more. */
const LONGEST_LINE = 24_000;

/** The fields of one log line, which hold what tenants wrote: each text is bounded, and so are all of them together. */
export function boundedFields(fields: Fields): Record<string, FieldValue> {
  let left = LONGEST_LINE;
  const bounded = (text: string): string => {
    const cut = boundedText(text, Math.min(LONGEST_TEXT, left));
    left = Math.max(0, left - cut.length);
    return cut;
  };
  const ofList = (list: readonly string[]): string[] => {
    const shown: string[] = [];
    for (const text of list) {
      if (left === 0) return [...shown, `and ${list.length - shown.length} more`];
      shown.push(bounded(text));
    }
    return shown;
  };
  const value = (field: FieldValue): FieldValue => {
    if (typeof field === 'string') return bounded(field);
    return isList(field) ? ofList(field) : field;
  };
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, value(field)]));
}

function isList(field: FieldValue): field is readonly string[] {
  return Array.isArray(field);
}
