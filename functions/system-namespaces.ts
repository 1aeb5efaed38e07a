import { scheduled } from '../lib/dispatch/scheduled.ts';
import { systemNamespaces } from '../lib/loops/system-namespaces.ts';

export const handler = scheduled(systemNamespaces);
