import { type Fault, throttle } from './fault-proxy.ts';

/** What the soak runs do to requests to the table. */
export const TABLE_FAULTS: readonly Fault[] = [
  { kind: 'dropRequest' },
  { kind: 'dropReply' },
  { kind: 'cutReply' },
  { kind: 'truncateReply' },
  ...throttle(1),
];
