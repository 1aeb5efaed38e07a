// A module for "node --import". It resolves imports from /opt, where Lambda unpacks layers, to the folder in the environment
// variable LAYERS_FROM.
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
