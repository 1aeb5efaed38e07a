import type { Plugin } from 'esbuild';

/**
 * An esbuild plugin for `node:http` and `node:https`: each export is read only when the code uses it. An `import` would read all
 * exports, and for some exports Node loads its own undici, which takes a sixth of the CPU time of a start.
 */
export const httpByProperty: Plugin = {
  name: 'http-by-property',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(node:)?https?$/ }, ({ path }) => ({ path, namespace: 'by-property' }));
    onLoad({ filter: /./, namespace: 'by-property' }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule('${path}');`,
    }));
  },
};
