import { allocatorFromLayer } from './allocator-layer.mjs';
import { httpByProperty } from './http-by-property.ts';
import { sdkParts } from './sdk-parts.ts';
import { mapsApart } from './source-maps.mjs';

export default [allocatorFromLayer, httpByProperty, sdkParts, mapsApart];
