import * as z from 'zod/mini';
import { answerShape } from '../lib/allocate/answer.ts';
import { requestShape } from '../lib/allocate/request.ts';
import { withoutIntegerBounds } from '../lib/cluster/shapes.ts';

type JsonSchema = Readonly<Record<string, unknown>>;

/** Returns the JSON Schema (draft 2020-12) of a request. It is less strict than the checks of the function. */
export function requestJsonSchema(): JsonSchema {
  return {
    title: 'Request to allocate, release or look up',
    description: 'The event of the function allocate of kube-bootstrap-controller.',
    ...z.toJSONSchema(requestShape, { io: 'input', override: withoutIntegerBounds }),
  };
}

export function answerJsonSchema(): JsonSchema {
  return {
    title: 'Answer to a request to allocate, release or look up',
    description: 'What the function allocate of kube-bootstrap-controller answers.',
    ...z.toJSONSchema(answerShape, { override: withoutIntegerBounds }),
  };
}
