import { allocation } from '../lib/allocate/allocation.ts';

export const handler = allocation();
