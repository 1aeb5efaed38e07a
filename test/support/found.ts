/** Returns the value. Throws if it is undefined. */
export function found<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('expected a value instead of undefined');
  return value;
}
