import { loopHandler } from '../lib/dispatch/dispatch.ts';
import { environmentFrom } from '../lib/environment/cluster-environment.ts';
import { deployed } from '../lib/environment/process-environment.ts';
import { systemNamespaces } from '../lib/loops/system-namespaces.ts';

export const handler = deployed(loopHandler(systemNamespaces), environmentFrom);
