import * as z from 'zod/mini';

/** Adds to a field of a shape the description and keywords of its JSON Schema. */
export function described<Type extends z.ZodMiniType>(type: Type, description: string, keywords: object = {}): Type {
  return type.check(z.meta({ description, ...keywords }));
}

/** Removes the bounds that all integers have from the result of `z.toJSONSchema`. */
export function withoutIntegerBounds({
  jsonSchema,
}: {
  readonly jsonSchema: { minimum?: unknown; maximum?: unknown };
}): void {
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
}
