import type * as z from 'zod/mini';
import { isRecord, type JsonRecord, nearestName } from '../cluster/values.ts';
import { fault, type SpecFault, type SpecPath } from './spec-fault.ts';
import { type ShapedSpec, SPEC_DEFAULTS, specShape } from './spec-fields.ts';

/** A value whose faulty parts are `undefined`; the other parts keep their place. */
type Draft<T> = T extends readonly (infer Item)[]
  ? readonly Draft<Item>[] | undefined
  : T extends object
    ? { readonly [Field in keyof T]?: Draft<T[Field]> } | undefined
    : T | undefined;

export type SpecDraft = NonNullable<Draft<ShapedSpec>>;
export type ServerDraft = NonNullable<NonNullable<SpecDraft['apiServers']>[number]>;
export type ServicePortDraft = NonNullable<NonNullable<NonNullable<SpecDraft['service']>['extraPorts']>[number]>;

export interface ShapeCheck {
  readonly faults: readonly SpecFault[];
  /** For the rules, which check every part of the right shape. */
  readonly draft: SpecDraft;
  readonly shaped?: ShapedSpec;
}

type Issue = z.core.$ZodIssue;

/** Fills in the defaults, and reports wrong types, missing and unknown fields. */
export function checkShape(value: unknown): ShapeCheck {
  const filled = withDefaults(value, SPEC_DEFAULTS);
  const parsed = specShape.safeParse(filled);
  if (parsed.success) return { faults: [], draft: parsed.data, shaped: parsed.data };

  const { issues } = parsed.error;
  const faulty = issues.filter(({ code }) => code !== 'unrecognized_keys');
  const draft = faulty.reduce<unknown>((found, issue) => without(found, pathOf(issue)), filled);
  return {
    faults: issues.flatMap((issue) => faultsOf(issue, filled)),
    // Faulty fields are removed; a draft does not guarantee more.
    draft: (draft ?? {}) as SpecDraft,
  };
}

function withDefaults(value: unknown, defaults: JsonRecord): unknown {
  if (!isRecord(value)) return value;
  const filled: Record<string, unknown> = { ...defaults, ...value };
  for (const [field, standard] of Object.entries(defaults)) {
    if (filled[field] === undefined) filled[field] = standard;
    else if (isRecord(standard)) filled[field] = withDefaults(filled[field], standard);
  }
  return filled;
}

/** Returns a copy with `undefined` at `path`; list items keep their index. */
function without(value: unknown, path: SpecPath): unknown {
  const [step, ...rest] = path;
  if (step === undefined || value === undefined) return undefined;
  if (Array.isArray(value)) return value.map((item, index) => (index === step ? without(item, rest) : item));
  return isRecord(value) ? { ...value, [step]: without(value[step], rest) } : undefined;
}

function faultsOf(issue: Issue, root: unknown): SpecFault[] {
  const at = pathOf(issue);
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => unknownField([...at, key], key, issue.message.split(' ')));
  }
  const value = valueAt(root, at);
  const expected = expectation(issue);
  if (value === undefined && at.length > 0) return [fault(at, 'is required', expected && `write ${expected}`)];
  if (issue.message.startsWith('Reconciler')) return [fault(at, issue.message, expected && `write ${expected}`)];
  return [fault(at, `is ${shown(value)}`, expected && `write ${expected}`)];
}

function unknownField(at: SpecPath, name: string, known: readonly string[]): SpecFault {
  const meant = nearestName(name, known);
  return fault(
    at,
    'is not a field',
    meant === undefined ? `the fields here are ${known.join(', ')}` : `write ${meant}`,
  );
}

/** Returns what zod expected, as the end of "write ...". */
function expectation(issue: Issue): string | undefined {
  if (issue.code === 'invalid_type') return NOUNS[issue.expected] ?? issue.expected;
  if (issue.code === 'invalid_value') return `one of ${issue.values.map(String).join(', ')}`;
  if (issue.code === 'too_small' && issue.origin === 'string') return 'some text';
  if (issue.code === 'too_small' || issue.code === 'too_big') return NOUNS['int'];
  return issue.code === 'invalid_union' ? RANGES[String(issue.path[0])] : undefined;
}

const RANGES: Readonly<Record<string, string>> = {
  serviceClusterIPRange: 'a CIDR such as 10.0.0.0/24, or a list of two of different families',
  serviceNodePortRange: 'a range such as 30000-32767',
};

const NOUNS: Readonly<Record<string, string>> = {
  int: 'a whole number',
  number: 'a whole number',
  string: 'text (in quotes, if it looks like something else)',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping of fields to values',
};

const MOST_SHOWN = 40;

function shown(value: unknown): string {
  if (value === null || value === undefined || value === '') return 'empty';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a mapping';
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}...` : text;
}

function pathOf({ path }: Issue): SpecPath {
  return path.map((step) => (typeof step === 'number' ? step : String(step)));
}

function valueAt(root: unknown, path: SpecPath): unknown {
  return path.reduce<unknown>((value, step) => {
    if (Array.isArray(value)) return value[Number(step)];
    return isRecord(value) ? value[step] : undefined;
  }, root);
}
