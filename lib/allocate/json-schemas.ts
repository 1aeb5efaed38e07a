import * as z from 'zod/mini';
import { isRecord } from '../cluster/values.ts';
import { answerShape } from './answer.ts';
import { MOST_ITEMS, requestShape } from './request.ts';

type JsonSchema = Readonly<Record<string, unknown>>;

const DRAFT = 'https://json-schema.org/draft/2020-12/schema';

const NAME = '1 to 63 of A-Z, a-z, 0-9, "-", "_" and ".", a letter or digit first and last.';

const REQUEST_WORDS: Readonly<Record<string, string>> = {
  requestId: `Your choice, unique for each request: ${NAME} A request that is sent again with the same id gets the same answer, for a day.`,
  cluster: 'The name under which the cluster is registered.',
  operation: 'lookUp only reads.',
  items: `At most ${MOST_ITEMS} addresses and ports, including those of count. All are allocated, or none.`,
  'items[]': 'One address or port by value, or any that are free. next is only for allocate.',
  'items[].range': 'Cluster IPs, those of the second family of a dual-stack cluster, or node ports.',
  'items[].value': 'The text of an address, or the number of a node port.',
  'items[].next': 'Any that is free.',
  'items[].count': 'How many of them. Default: 1.',
  hold: 'Only for allocate. What is allocated is held until a Service claims it, or until the hold ends. Default: for the requestId, for 15 minutes, claimed by any Service.',
  'hold.owner': `The owner of the hold: ${NAME}`,
  'hold.until': 'When it ends, or "forever". Default: 15 minutes from now.',
  'hold.takenUpBy':
    'Which Service may claim the address or port: any, or only one whose label kube-bootstrap-controller/hold-owner is the owner. Default: any.',
  owner: `Only for release: the owner of the hold. What another owner holds, or is not held, is refused. ${NAME}`,
  takeUp:
    'Only for allocate, for a Service: values that are held, and that this Service may claim, are allocated as well, and are then held for this request. Set it in every request for a Service: no other request can claim what such a request allocated.',
  'takeUp.holdOwner':
    'The label kube-bootstrap-controller/hold-owner of the Service. Absent: it has none, and can claim only what any Service may.',
  dryRun: 'Returns the answer, and writes nothing.',
  callerKey: 'Your key, where the spec of the cluster has callerKeys. It is neither logged nor stored.',
};

const ANSWER_WORDS: Readonly<Record<string, string>> = {
  outcome:
    'refused: nothing was allocated. In a release over several ranges, one range can refuse after another has released: each item has its own outcome. A failure in between is not an answer but an error of the function.',
  items: 'One for each address and port, in the order of the request.',
  'items[].value': 'Absent where next was requested and nothing was allocated.',
  'items[].outcome':
    'released: it was released, or free: it was free before. unknown: an earlier invocation of this request was not completed and may have released it. lookUp answers taken or free. refused: it did not change.',
  'items[].hold': 'The owner, the end of the hold, and which Services may claim it.',
  'items[].strikes': 'How many passes of the repair loop saw it without a Service. The third frees it.',
  'items[].band': 'next is allocated from the static band only when the dynamic one is full.',
  'items[].error': 'Why this one was refused.',
  error:
    'Why the request was refused: Full, AlreadyAllocated, NotInRange, NotReady, MismatchedRange, BadHold, HoldsFull, NotRegistered, CallerRefused, OtherStack, ObserveOnly, NoSecondaryRange, RequestIdTaken, NotHeld or InProgress.',
  replayed: 'This is the stored answer of an earlier invocation.',
  dryRun: 'Nothing was written.',
};

/** A port by its number, an address by its text, or any. */
const ONE_OF_THESE = [
  { required: ['value'], properties: { range: { const: 'servicenodeports' }, value: { type: 'integer' } } },
  {
    required: ['value'],
    properties: { range: { enum: ['serviceips', 'secondaryserviceips'] }, value: { type: 'string' } },
  },
  { required: ['next'] },
];

/** The JSON Schema (draft 2020-12) of a request. It is less strict than the rules, and decides nothing. */
export function requestJsonSchema(): JsonSchema {
  const schema = withWords(z.toJSONSchema(requestShape, { io: 'input' }), REQUEST_WORDS);
  return {
    $schema: DRAFT,
    title: 'Request to allocate, release or look up',
    description: 'The event of the function allocate of kube-bootstrap-controller.',
    ...changed(schema, 'properties', (properties) =>
      changed(properties, 'items', (list) => ({
        ...changed(list, 'items', (item) => ({ ...item, oneOf: ONE_OF_THESE })),
        maxItems: MOST_ITEMS,
      })),
    ),
  };
}

export function answerJsonSchema(): JsonSchema {
  return {
    $schema: DRAFT,
    title: 'Answer to a request to allocate, release or look up',
    description: 'What the function allocate of kube-bootstrap-controller answers.',
    ...withWords(z.toJSONSchema(answerShape), ANSWER_WORDS),
  };
}

/** The schema with the description of each field, and without the bounds of all integers. */
function withWords(schema: JsonSchema, words: Readonly<Record<string, string>>, path = ''): JsonSchema {
  const { $schema: _, minimum, maximum, properties, items, anyOf, ...rest } = schema;
  const description = words[path];
  const around = path === '' ? '' : `${path}.`;
  const fields = Object.entries(mapping(properties) ?? {});
  const item = mapping(items);
  return {
    ...(description !== undefined && { description }),
    ...rest,
    ...(minimum !== undefined && minimum !== Number.MIN_SAFE_INTEGER && { minimum }),
    ...(maximum !== undefined && maximum !== Number.MAX_SAFE_INTEGER && { maximum }),
    ...(Array.isArray(anyOf) && { anyOf: anyOf.map((one) => withWords(one, {})) }),
    ...(fields.length > 0 && {
      properties: Object.fromEntries(
        fields.map(([name, field]) => [name, withWords(mapping(field) ?? {}, words, `${around}${name}`)]),
      ),
    }),
    ...(item && { items: withWords(item, words, `${path}[]`) }),
  };
}

function changed(schema: JsonSchema, name: string, change: (part: JsonSchema) => JsonSchema): JsonSchema {
  return { ...schema, [name]: change(mapping(schema[name]) ?? {}) };
}

function mapping(value: unknown): JsonSchema | undefined {
  return isRecord(value) ? value : undefined;
}
