import { registerHooks } from 'node:module';
import { type Edit, type Plant, SCALES } from './plants.ts';

const STAND_IN = new URL('./stand-in-http-client.ts', import.meta.url).href;
const ROOT = new URL('../../', import.meta.url).href;

/** Loads the stand-in for the HTTP client, and the code of the plant, in place of the project's own modules from now on. */
export function loadWithStandIns(plant: Plant | undefined): void {
  const all = [...SCALES, ...(plant?.edits ?? [])];
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === './http-client.ts' ? { url: STAND_IN, shortCircuit: true } : next(specifier, context),
    load: (url, context, next) => {
      const loaded = next(url, context);
      const edits = all.filter(({ file }) => url === ROOT + file);
      if (edits.length === 0) return loaded;
      return { ...loaded, source: edits.reduce(edited, String(loaded.source)) };
    },
  });
}

/** Returns the source with the text replaced. @throws if the text does not occur exactly once: the plant must be updated. */
export function edited(source: string, { file, find, replace }: Edit): string {
  const parts = source.split(find);
  if (parts.length !== 2)
    throw new Error(`${file} has ${parts.length - 1} times, not once: ${find}. Correct it in plants.txt or guards.txt`);
  return parts.join(replace);
}
