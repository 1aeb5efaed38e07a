import * as z from 'zod/mini';
import { boundedText, cutText } from '../util/values.ts';

/** Adds a description and keywords for the JSON Schema to a field of a shape. */
export function described<Type extends z.ZodMiniType>(type: Type, description: string, keywords: object = {}): Type {
  return type.check(z.meta({ description, ...keywords }));
}

/** Returns a field that users may omit. `value` is its default, in the form that users write. */
export function withDefault<Type extends z.ZodMiniType>(
  value: NoInfer<z.input<Type>>,
  type: Type,
  description: string,
  keywords?: object,
): z.ZodMiniPrefault<Type> {
  return z.prefault(described(type, description, keywords), value);
}

/** Returns a field that may be absent in written and in stored specs. */
export function optional<Type extends z.ZodMiniType>(
  type: Type,
  description: string,
  keywords?: object,
): z.ZodMiniExactOptional<Type> {
  return z.exactOptional(described(type, description, keywords));
}

export const text = z.string().check(z.minLength(1));

/** Returns the error of a check. `message` contains the fault and its correction; `{}` stands for the value. */
export function errorText(message: string) {
  const ofEmpty = message.replace(/^\{\} is/, 'is empty, which is');
  return {
    error: ({ input }: { readonly input?: unknown }) =>
      (input === '' ? ofEmpty : message).replace('{}', () => shownValue(input, 70)),
  };
}

/** Returns a value as text for an error message. A string is quoted, and cut after `longest` characters. */
export function shownValue(value: unknown, longest: number): string {
  if (value === null || value === undefined || value === '') return 'empty';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a mapping';
  return typeof value === 'string' ? JSON.stringify(cutText(value, longest)) : String(value);
}

export function patterned(pattern: RegExp, message: string): z.ZodMiniString<string> {
  return z.string().check(z.regex(pattern, errorText(message)));
}

export function integer(minimum: number, maximum: number, message: string): z.ZodMiniNumberFormat {
  return z.int().check(z.gte(minimum, errorText(message)), z.lte(maximum, errorText(message)));
}

/** Removes the bounds that `z.toJSONSchema` adds to every integer. */
export function withoutIntegerBounds({
  jsonSchema,
}: {
  readonly jsonSchema: { minimum?: unknown; maximum?: unknown };
}): void {
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
}

/** An integer of at least 0. */
export const count = z.int().check(z.gte(0));

/** Returns the shape of the output of `type`. It checks only types, requires fields with `z.prefault`, and keeps unknown fields. */
export function storedShape<Type extends z.ZodMiniType>(type: Type): z.ZodMiniType<z.output<Type>> {
  return formOf(type) as z.ZodMiniType<z.output<Type>>;
}

function formOf(type: z.core.$ZodType): z.core.$ZodType {
  if (type instanceof z.ZodMiniPrefault) return formOf(type.def.innerType);
  if (type instanceof z.ZodMiniDefault) {
    const { innerType, defaultValue } = type.def;
    return z._default(formOf(innerType), defaultValue);
  }
  if (type instanceof z.ZodMiniExactOptional) return z.exactOptional(formOf(type.def.innerType));
  if (type instanceof z.ZodMiniPipe) return formOf(type.def.out);
  if (type instanceof z.ZodMiniArray) return z.array(formOf(type.def.element));
  if (type instanceof z.ZodMiniUnion) {
    const { def } = type;
    return z.clone(type, { ...def, options: def.options.map(formOf) });
  }
  if (type instanceof z.ZodMiniNumber) return count;
  if (type instanceof z.ZodMiniString) return text;
  if (!(type instanceof z.ZodMiniObject)) return type;
  return z.looseObject(
    Object.fromEntries(Object.entries(type.def.shape).map(([field, inner]) => [field, formOf(inner)])),
  );
}

const MOST_LISTED = 20;
/** The default message of zod. */
export const NO_MESSAGE = 'Invalid input';

/** Returns the faults of a value in one sentence, each with its path. `whole` names the whole value, which has no path. */
export function shapeFaults({ issues }: Pick<z.core.$ZodError, 'issues'>, whole: string): string {
  const listed = issues.slice(0, MOST_LISTED).map((issue) => faultOf(issue, whole));
  const more = issues.length > MOST_LISTED ? [`and ${issues.length - MOST_LISTED} more`] : [];
  return [...listed, ...more].join('; ');
}

function faultOf(issue: z.core.$ZodIssue, whole: string): string {
  const at = issue.path.length === 0 ? whole : issue.path.join('.');
  if (issue.code === 'unrecognized_keys') {
    const keys = `${boundedText(issue.keys.map((key) => `"${key}"`).join(', '))} is not known`;
    return issue.path.length === 0 ? keys : `${at}: ${keys}`;
  }
  if (issue.code === 'invalid_type') return `${at} is not of type ${issue.expected}`;
  if (issue.message !== NO_MESSAGE) return `${at} ${issue.message}`;
  return issue.code === 'invalid_value' ? `${at} is none of ${issue.values.join(', ')}` : `${at} is not valid`;
}

export const CLUSTER_NAME = /^[a-z0-9-]{1,63}$/;
export const clusterName = z.string().check(z.regex(CLUSTER_NAME, 'is not the name of a cluster'));
