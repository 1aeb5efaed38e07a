import * as z from 'zod/mini';
import { writtenSpecShape } from '../../lib/spec/cluster-spec.ts';
import { NO_MESSAGE, shownValue } from '../../lib/spec/shapes.ts';
import { firstIndexes, isRecord } from '../../lib/util/values.ts';
import { nearestName } from './names.ts';
import type { Report, SpecPath } from './spec-fault.ts';

type WrittenSpec = z.input<typeof writtenSpecShape>;

/** A value in which each faulty part is `undefined`. The other parts keep their places. */
type Draft<T> = T extends readonly (infer Item)[]
  ? readonly Draft<Item>[] | undefined
  : T extends object
    ? { readonly [Field in keyof T]?: Draft<T[Field]> } | undefined
    : T | undefined;

export type SpecDraft = NonNullable<Draft<WrittenSpec>>;
export type ServerDraft = NonNullable<NonNullable<SpecDraft['apiServers']>[number]>;

/** Returns the spec with its defaults, and reports wrong types, missing and unknown fields. */
export function checkShape(value: unknown, report: Report): SpecDraft {
  return (draftOf(writtenSpecShape, value, [], report) ?? {}) as SpecDraft;
}

function draftOf(type: z.core.$ZodType, value: unknown, at: SpecPath, report: Report): unknown {
  if (type instanceof z.core.$ZodDefault || type instanceof z.core.$ZodPrefault) {
    const { innerType, defaultValue } = type._zod.def;
    return draftOf(innerType, value === undefined ? defaultValue : value, at, report);
  }
  if (type instanceof z.core.$ZodExactOptional) return draftOf(type._zod.def.innerType, value, at, report);
  if (type instanceof z.core.$ZodPipe) return draftOf(type._zod.def.in, value, at, report);
  if (type instanceof z.core.$ZodObject && isRecord(value)) {
    return draftOfFields(type._zod.def.shape, value, at, report);
  }
  if (type instanceof z.core.$ZodArray && Array.isArray(value)) {
    const { element } = type._zod.def;
    if (z.globalRegistry.get(type)?.['uniqueItems'] === true) checkUnique(value, at, report);
    return value.map((item, index) => draftOf(element, item, [...at, index], report));
  }
  const { data, error } = z.safeParse(type, value);
  const [issue] = error?.issues ?? [];
  if (issue !== undefined) reportIssue(issue, value, at, report);
  return data;
}

function draftOfFields(
  shape: z.core.$ZodShape,
  value: Readonly<Record<string, unknown>>,
  at: SpecPath,
  report: Report,
): unknown {
  const isAbsent = (field: string, type: z.core.$ZodType) =>
    type instanceof z.core.$ZodExactOptional && !Object.hasOwn(value, field);
  const drafts = Object.entries(shape)
    .filter(([field, type]) => !isAbsent(field, type))
    .map(([field, type]) => [field, draftOf(type, value[field], [...at, field], report)]);
  const known = Object.keys(shape);
  for (const field of Object.keys(value).filter((each) => !known.includes(each))) {
    const meant = nearestName(field, known);
    const fix = meant === undefined ? `the fields here are ${known.join(', ')}` : `write ${meant}`;
    report([...at, field], 'is not a field', fix);
  }
  return Object.fromEntries(drafts);
}

function checkUnique(items: readonly unknown[], at: SpecPath, report: Report): void {
  const first = firstIndexes(items);
  for (const [index, item] of items.entries()) {
    const same = first.get(item);
    if (same !== index) report([...at, index], `is the same as entry ${same}`, 'write each entry once');
  }
}

/** The maximum length of a quoted value. A longer text of a wrong type is cut, because it can be a credential. */
const MOST_SHOWN = 39;

function reportIssue(issue: z.core.$ZodIssue, value: unknown, at: SpecPath, report: Report): void {
  const expected = expectation(issue);
  const fix = expected && `write ${expected}`;
  // A document that is only text is not quoted, because it can be a file of another kind, for example a token.
  if (at.length === 0 && typeof value === 'string') report(at, 'is text', fix);
  else if (value === undefined && at.length > 0) report(at, 'is required', fix);
  else report(at, issue.message === NO_MESSAGE ? `is ${shownValue(value, MOST_SHOWN)}` : issue.message, fix);
}

/** Returns a description of accepted values, such as `one of observe, enforce`. The reported fix is `write` followed by it. */
function expectation(issue: z.core.$ZodIssue): string | undefined {
  if (issue.code === 'invalid_type') return NOUNS[issue.expected] ?? issue.expected;
  if (issue.code === 'invalid_value') return `one of ${issue.values.map(String).join(', ')}`;
  if (issue.code === 'too_small' && issue.origin === 'string') return 'some text';
  if (issue.code === 'too_big' && issue.message === NO_MESSAGE) return NOUNS['int'];
  return undefined;
}

const NOUNS: Readonly<Record<string, string>> = {
  int: 'a whole number',
  number: 'a whole number',
  string: 'text (in quotes, if it looks like something else)',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping of fields to values',
};
