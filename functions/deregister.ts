import { deregistration } from '../lib/dispatch/deregistration.ts';

export const handler = deregistration();
