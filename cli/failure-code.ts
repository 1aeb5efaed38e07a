import { isNativeError } from 'node:util/types';

/** What the system calls a failure, such as `ENOENT`; of what has no such name, its text. */
export function failureCode(error: unknown): string {
  return isNativeError(error) && 'code' in error ? String(error.code) : String(error);
}
