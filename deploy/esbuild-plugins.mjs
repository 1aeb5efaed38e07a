// What serverless-esbuild adds to the build of each function.
import { allocatorFromLayer } from './allocator-layer.mjs';

export default [allocatorFromLayer];
