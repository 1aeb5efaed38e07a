import { loopHandler } from '../lib/dispatch/dispatch.ts';
import { systemNamespaces } from '../lib/loops/system-namespaces.ts';
import { environmentFrom } from '../lib/runtime/cluster-environment.ts';
import { deployed } from '../lib/runtime/process-environment.ts';

export const handler = deployed(loopHandler(systemNamespaces), environmentFrom);
