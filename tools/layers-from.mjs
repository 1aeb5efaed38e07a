// For "node --import": what a deployed bundle imports from /opt, where Lambda unpacks layers, is taken from the folder
// that the environment variable LAYERS_FROM names.
import { registerHooks } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const folder = process.env['LAYERS_FROM'];

registerHooks({
  resolve(specifier, context, nextResolve) {
    const inLayer = folder !== undefined && specifier.startsWith('/opt/');
    return nextResolve(
      inLayer ? pathToFileURL(path.join(folder, specifier.slice('/opt/'.length))).href : specifier,
      context,
    );
  },
});
