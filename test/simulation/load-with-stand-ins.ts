import { registerHooks } from 'node:module';
import { type Edit, type Plant, SCALES } from './plants.ts';

const STAND_IN = new URL('./stand-in-http-client.ts', import.meta.url).href;
const ROOT = new URL('../../', import.meta.url).href;

/** From now on modules of the project get the stand-in for the HTTP client, and the code of a plant in place of their own. */
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

/** @throws when the text to replace is not there exactly once: the plant is to be written again. */
export function edited(source: string, { file, find, replace }: Edit): string {
  const parts = source.split(find);
  if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times, not once: ${find}`);
  return parts.join(replace);
}
