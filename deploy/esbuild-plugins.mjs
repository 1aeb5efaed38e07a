// The esbuild plugins of each function for serverless-esbuild.
import { allocatorFromLayer } from './allocator-layer.mjs';
import { mapsApart } from './source-maps.mjs';

/**
 * Reads exports of these modules when they are used. An `import` reads all of them at once, among them those for which
 * Node loads its own undici, which is a sixth of the CPU time of a start.
 */
const httpByProperty = {
  name: 'http-by-property',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(node:)?https?$/ }, ({ path }) => ({ path, namespace: 'by-property' }));
    onLoad({ filter: /./, namespace: 'by-property' }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule('${path}');`,
    }));
  },
};

export default [allocatorFromLayer, httpByProperty, mapsApart];
