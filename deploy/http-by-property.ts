import type { Plugin } from 'esbuild';

/**
 * An esbuild plugin that reads the exports of these modules when the code uses them. An `import` reads all exports. For
 * some of them Node loads its own undici, which takes a sixth of the CPU time of a start.
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
