import * as z from 'zod/mini';

/** A field of a shape with the words that its JSON Schema has for it, and keywords that its type does not have. */
export function described<Type extends z.ZodMiniType>(type: Type, description: string, keywords: object = {}): Type {
  return type.check(z.meta({ description, ...keywords }));
}
