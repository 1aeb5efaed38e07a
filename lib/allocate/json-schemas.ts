import * as z from 'zod/mini';
import { isRecord } from '../cluster/values.ts';
import { answerShape } from './answer.ts';
import { MOST_ITEMS, requestShape } from './request.ts';

type JsonSchema = Readonly<Record<string, unknown>>;

const DRAFT = 'https://json-schema.org/draft/2020-12/schema';

const NAME = '1 to 63 of A-Z, a-z, 0-9, "-", "_" and ".", a letter or digit first and last.';

const REQUEST_WORDS: Readonly<Record<string, string>> = {
  requestId: `Yours to choose, another for each request: ${NAME} A request that is sent again with the same id is answered the same, for a day.`,
  cluster: 'The name under which the cluster is registered.',
  operation: 'lookUp reads alone.',
  items: `At most ${MOST_ITEMS} addresses and ports, with those that are counted. All are allocated, or none.`,
  'items[]': 'One address or port that you name, or any that are free. Without a value, only to allocate.',
  'items[].range': 'Cluster IPs, those of the second family of a dual-stack cluster, or node ports.',
  'items[].value': 'The text of an address, or the number of a node port.',
  'items[].next': 'Any that is free.',
  'items[].count': 'How many of them. Default: 1.',
  hold: 'Only to allocate. What is allocated is held for you until a Service takes it up, or until it ends. Default: for the requestId, for 15 minutes, taken up by any Service.',
  'hold.owner': `For whom: ${NAME}`,
  'hold.until': 'When it ends, or "forever". Default: 15 minutes from now.',
  'hold.takenUpBy':
    'Any Service that has the address or port, or only one whose label kube-bootstrap-controller/hold-owner is the owner. Default: any.',
  owner: `Only to release: for whom. What another owner holds, or is not held, is refused. ${NAME}`,
  takeUp:
    'Only to allocate, and for a Service: values that are held, and that this Service may take up, are allocated as well, and are held for this request from then on. Say it in every request for a Service: what such a request took is not for another to take up.',
  'takeUp.holdOwner':
    'The label kube-bootstrap-controller/hold-owner of the Service. Absent: it has none, and may have what any Service may.',
  dryRun: 'Answers as it would, and writes nothing.',
  callerKey: 'Your key, where the spec of the cluster has callerKeys. It is neither logged nor stored.',
};

const ANSWER_WORDS: Readonly<Record<string, string>> = {
  outcome:
    'refused: nothing was allocated. Of a release over several ranges one can refuse, and another have released: each item says which. What failed in the middle is no answer, but an error of the function.',
  items: 'One for each address and port, in the order in which they were asked for.',
  'items[].value': 'Absent where any was asked for and none was given.',
  'items[].outcome':
    'released, or free before. unknown: an earlier invocation of this request did not come to its end, and may have released it or not. taken and free say how it stands. refused: nothing was done with it.',
  'items[].hold': 'Who holds it, until when, and who may take it up.',
  'items[].strikes': 'How many passes of the repair loop saw it without a Service. The third frees it.',
  'items[].band': 'Any that is free is given from the static band only when the dynamic one is full.',
  'items[].error': 'Why this one was refused.',
  error:
    'Why the request was refused: Full, AlreadyAllocated, NotInRange, NotReady, MismatchedRange, BadHold, HoldsFull, NotRegistered, CallerRefused, OtherStack, ObserveOnly, NoSecondaryRange, RequestIdTaken, NotHeld or InProgress.',
  replayed: 'The answer that was given before.',
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

/** The JSON Schema (draft 2020-12) of a request. It says less than the rules, and nothing is decided by it. */
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

/** The JSON Schema of an answer. */
export function answerJsonSchema(): JsonSchema {
  return {
    $schema: DRAFT,
    title: 'Answer to a request to allocate, release or look up',
    description: 'What the function allocate of kube-bootstrap-controller answers.',
    ...withWords(z.toJSONSchema(answerShape), ANSWER_WORDS),
  };
}

/** The schema with the words for each field that there are, and without what tells nobody anything. */
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
