// Keeps source maps for tools/symbolise.mjs, but not in the packages, because they would cost memory in the functions.
import { mkdirSync, renameSync } from 'node:fs';
import path from 'node:path';

const folder = path.join(import.meta.dirname, '..', '.cache', 'maps');

/**
 * Moves the source map of a bundle out of the package.
 * @param name the name of the bundle in Lambda, such as `functions/doctor.mjs`
 */
export function keepMap(bundle, name) {
  const kept = path.join(folder, `${name}.map`);
  mkdirSync(path.dirname(kept), { recursive: true });
  renameSync(`${bundle}.map`, kept);
}

export const mapsApart = {
  name: 'maps-apart',
  setup({ initialOptions: { outdir, entryPoints }, onEnd }) {
    onEnd(({ errors }) => {
      if (errors.length > 0) return;
      for (const entry of entryPoints) {
        const name = `${path.basename(entry, '.ts')}.mjs`;
        keepMap(path.join(outdir, name), `functions/${name}`);
      }
    });
  },
};
