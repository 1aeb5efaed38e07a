import * as z from 'zod/mini';

/** An integer of at least 0. */
const count = z.int().check(z.gte(0));

/**
 * Returns the shape of the output of `type`: every field with a `z.prefault` is required, and mappings accept fields of a
 * later version.
 */
export function storedForm<Type extends z.ZodMiniType>(type: Type): z.ZodMiniType<z.output<Type>> {
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
  if (!(type instanceof z.ZodMiniObject)) return type;
  return z.looseObject(
    Object.fromEntries(Object.entries(type.def.shape).map(([field, inner]) => [field, formOf(inner)])),
  );
}
