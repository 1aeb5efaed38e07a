// The esbuild plugins of each function for serverless-esbuild.
import { allocatorFromLayer } from './allocator-layer.mjs';
import { mapsApart } from './source-maps.mjs';

export default [allocatorFromLayer, mapsApart];
