import { hash } from 'node:crypto';
import * as z from 'zod/mini';
import { HOLD_OWNER, HOLD_OWNER_SYNTAX } from '../range/hold.ts';
import { CALLER_KEY } from '../runtime/caller-keys.ts';
import { DispatchError } from '../runtime/deadline.ts';
import { clusterName, described, shapeFaults } from '../spec/shapes.ts';
import { isRecord } from '../util/values.ts';

/** The keys of the ranges in the table, without the prefix `ranges/`. */
export const RANGE_NAMES = ['serviceips', 'secondaryserviceips', 'servicenodeports'] as const;
export type RangeName = (typeof RANGE_NAMES)[number];

/** The maximum number of items in a request. A hold of 256 long IPv6 addresses takes a sixth of `MOST_HOLD_BYTES`. */
export const MOST_ITEMS = 256;

/** The maximum length of a value: longer than any address. */
const LONGEST_VALUE = 64;

const NO_VALUE = 'is neither the text of an address nor the number of a port';
const NO_END = 'is neither "forever" nor a time such as 2026-01-31T12:00:00Z';
const NAME = `${HOLD_OWNER_SYNTAX}.`;
const name = z.string().check(z.regex(HOLD_OWNER, `is not ${HOLD_OWNER_SYNTAX}`));

const value = z.union(
  [z.string().check(z.minLength(1, NO_VALUE), z.maxLength(LONGEST_VALUE, NO_VALUE)), z.int()],
  NO_VALUE,
);

const item = z
  .strictObject({
    range: described(
      z.enum(RANGE_NAMES),
      'Cluster IPs, those of the second family of a dual-stack cluster, or node ports.',
    ),
    value: z.optional(described(value, 'The text of an address, or the number of a node port.')),
    next: z.optional(described(z.literal(true, 'is not true'), 'Any that is free.')),
    count: z.optional(
      described(
        z.int().check(z.gte(1, 'is below 1'), z.lte(MOST_ITEMS, `is above ${MOST_ITEMS}`)),
        'How many of them. Default: 1.',
      ),
    ),
  })
  .check(({ value, issues }) => {
    for (const fault of itemFaults(value)) issues.push({ code: 'custom', input: value, ...fault });
  });

/** The JSON schemas of the three forms of an item: a port, an address, or any free item. */
const ONE_OF_THESE = [
  { required: ['value'], properties: { range: { const: 'servicenodeports' }, value: { type: 'integer' } } },
  {
    required: ['value'],
    properties: { range: { enum: ['serviceips', 'secondaryserviceips'] }, value: { type: 'string' } },
  },
  { required: ['next'] },
];

const hold = z.strictObject({
  owner: described(name, `The owner of the hold: ${NAME}`),
  until: z.optional(
    described(
      z.union([z.literal('forever'), z.iso.datetime({ offset: true, error: NO_END })], NO_END),
      'When it ends, or "forever". Default: 15 minutes from now.',
    ),
  ),
  takenUpBy: z.optional(
    described(
      z.enum(['any', 'owner']),
      'Which Service may claim the address or port: any, or only one whose label kube-bootstrap-controller/hold-owner is the owner. Default: any.',
    ),
  ),
});

const takeUp = z.strictObject({
  holdOwner: z.optional(
    described(
      name,
      'The label kube-bootstrap-controller/hold-owner of the Service. Absent: it has none, and can claim only what any Service may.',
    ),
  ),
});

export const requestShape = z
  .strictObject({
    requestId: described(
      name,
      `Your choice, unique for each request: ${NAME} A request that is sent again with the same id gets the same answer, for a day.`,
    ),
    cluster: described(clusterName, 'The name under which the cluster is registered.'),
    operation: described(z.enum(['allocate', 'release', 'lookUp']), 'lookUp only reads.'),
    items: described(
      z
        .array(
          described(item, 'One address or port by value, or any that are free. next is only for allocate.', {
            oneOf: ONE_OF_THESE,
          }),
        )
        .check(z.minLength(1, 'is empty')),
      `At most ${MOST_ITEMS} addresses and ports, including those of count. All are allocated, or none.`,
      { maxItems: MOST_ITEMS },
    ),
    hold: z.optional(
      described(
        hold,
        'Only for allocate. What is allocated is held until a Service claims it, or until the hold ends. Default: for the requestId, for 15 minutes, claimed by any Service.',
      ),
    ),
    owner: z.optional(
      described(
        name,
        `Only for release: the owner of the hold. What another owner holds, or is not held, is refused. ${NAME}`,
      ),
    ),
    takeUp: z.optional(
      described(
        takeUp,
        'Only for allocate, for a Service: values that are held, and that this Service may claim, are allocated as well, and are then held for this request. Set it in every request for a Service: no other request can claim what such a request allocated.',
      ),
    ),
    dryRun: z.optional(described(z.boolean(), 'Returns the answer, and writes nothing.')),
    callerKey: z.optional(
      described(
        z.string().check(z.regex(CALLER_KEY, 'is not 32 to 256 printable characters')),
        'Your key, where the spec of the cluster has callerKeys. It is neither logged nor stored.',
      ),
    ),
  })
  .check(({ value, issues }) => {
    for (const fault of requestFaults(value)) issues.push({ code: 'custom', input: value, ...fault });
  });

export type AllocateRequest = z.infer<typeof requestShape>;

/** A requested address or port. If `value` is absent, any free item is requested. */
export interface RequestedItem {
  readonly range: RangeName;
  readonly value?: string | number;
}

/** Parses the event of an invocation. @throws DispatchError `BadEvent`, with all faults and their paths. */
export function parseRequest(event: unknown): AllocateRequest {
  // The items are counted before they are checked, because zod throws a RangeError for very many faults.
  const many = isRecord(event) && Array.isArray(event['items']) ? event['items'].length : 0;
  if (many > MOST_ITEMS) throw notARequest(`items ${tooMany(many)}`);
  const parsed = requestShape.safeParse(event);
  if (parsed.success) return parsed.data;
  throw notARequest(shapeFaults(parsed.error, 'the event'));
}

function notARequest(faults: string): DispatchError {
  return new DispatchError('BadEvent', `The event is not a request (docs/allocate-request.schema.json): ${faults}`);
}

/** Returns one entry for each address and port, in the order of the request. */
export function requestedItems({ items }: Pick<AllocateRequest, 'items'>): readonly RequestedItem[] {
  return items.flatMap(({ range, value, count = 1 }) =>
    value === undefined ? Array<RequestedItem>(count).fill({ range }) : [{ range, value }],
  );
}

/** Returns a hash of the request. The hash does not depend on the order of fields or on default values. */
export function fingerprintOf({ operation, items, hold: terms, owner, takeUp: service }: AllocateRequest): string {
  const requested = items.map(({ range, value, count = 1 }) => [range, value ?? null, count]);
  const held = terms === undefined ? null : [terms.owner, terms.until ?? null, terms.takenUpBy ?? 'any'];
  const holder = service === undefined ? [] : [service.holdOwner ?? null];
  const text = JSON.stringify([operation, requested, held, ...holder]);
  return hash('sha256', owner === undefined ? text : text + JSON.stringify({ owner }), 'base64url');
}

interface Fault {
  readonly message: string;
  readonly path: (string | number)[];
}

function itemFaults({ range, value, next, count }: z.infer<typeof item>): Fault[] {
  if ((value === undefined) === (next === undefined)) {
    return [{ message: 'needs either "value", an address or port, or "next", any that is free', path: [] }];
  }
  const faults: Fault[] = [];
  if (value !== undefined && (typeof value === 'number') !== (range === 'servicenodeports')) {
    const requested = range === 'servicenodeports' ? 'the number of a port' : 'the text of an address';
    faults.push({ message: `is not ${requested}`, path: ['value'] });
  }
  if (value !== undefined && count !== undefined) faults.push({ message: 'is only for "next"', path: ['count'] });
  return faults;
}

function tooMany(items: number): string {
  return `requests ${items} addresses and ports, but the limit is ${MOST_ITEMS}: send several requests, each with its own id`;
}

function requestFaults({ operation, items, hold: terms, owner, takeUp: service }: AllocateRequest): Fault[] {
  const faults: Fault[] = [];
  const many = items.reduce((sum, { count = 1 }) => sum + count, 0);
  if (many > MOST_ITEMS) {
    faults.push({ message: tooMany(many), path: ['items'] });
  }
  if (owner !== undefined && operation !== 'release') {
    faults.push({ message: 'is only for "release": to allocate, set hold.owner', path: ['owner'] });
  }
  if (operation === 'allocate') return faults;
  if (terms !== undefined) faults.push({ message: 'is only for "allocate"', path: ['hold'] });
  if (service !== undefined) faults.push({ message: 'is only for "allocate"', path: ['takeUp'] });
  for (const [index, { next }] of items.entries()) {
    if (next !== undefined) faults.push({ message: 'is only for "allocate"', path: ['items', index, 'next'] });
  }
  return faults;
}
