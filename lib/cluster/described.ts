import * as z from 'zod/mini';

/** A field of a shape with the words that its JSON Schema has for it, and keywords that its type does not have. */
export function described<Type extends z.ZodMiniType>(type: Type, description: string, keywords: object = {}): Type {
  return type.check(z.meta({ description, ...keywords }));
}

/** For `z.toJSONSchema`: removes the bounds that all integers have, which are noise. */
export function withoutIntegerBounds({
  jsonSchema,
}: {
  readonly jsonSchema: { minimum?: unknown; maximum?: unknown };
}): void {
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
}
