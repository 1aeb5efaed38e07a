import path from 'node:path';

/**
 * What a person types in this folder to run kbctl: `npx kbctl` where npm ran it, or it is a package's own and not on the
 * path.
 * @param script as in `process.argv`: the link that was called, or the file itself
 */
export function calledAs(script: string, { npm_lifecycle_event: npmEvent }: NodeJS.ProcessEnv): string {
  const isOfPackage = path.basename(path.dirname(script)) === '.bin' || path.basename(script) === 'kbctl.mjs';
  return npmEvent !== undefined || isOfPackage ? 'npx kbctl' : 'kbctl';
}
