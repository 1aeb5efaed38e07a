// What serverless-esbuild adds to the build of each function.
import { allocatorFromLayer } from './allocator-layer.mjs';

/** Of the Kubernetes client only KubeConfig is used: its file alone spares each bundle websockets, tar and the rest. */
const kubeConfigAlone = {
  name: 'kube-config-alone',
  setup({ onResolve, resolve }) {
    onResolve({ filter: /^@kubernetes\/client-node$/ }, async ({ path: name, resolveDir, kind, pluginData }) => {
      if (pluginData === 'whole') return undefined;
      const whole = await resolve(name, { resolveDir, kind, pluginData: 'whole' });
      return { path: whole.path.replace(/index\.js$/, 'config.js'), sideEffects: false };
    });
  },
};

export default [allocatorFromLayer, kubeConfigAlone];
