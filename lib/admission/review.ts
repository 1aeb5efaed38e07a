import * as z from 'zod/mini';
import type { PatchOperation } from './patch.ts';
import type { RefusalStatus } from './refusals.ts';
import { type Service, serviceShape } from './service.ts';

const API_VERSION = 'admission.k8s.io/v1';
const KIND = 'AdmissionReview';
const LONGEST_NAME = 253;

const review = z.object({
  apiVersion: z.literal(API_VERSION, `is not ${API_VERSION}`),
  kind: z.literal(KIND, `is not ${KIND}`),
  request: z.object({
    uid: z.string().check(z.minLength(1, 'is empty'), z.maxLength(LONGEST_NAME, 'is too long')),
    kind: z.object({ group: z.string(), version: z.string(), kind: z.string() }),
    operation: z.string(),
    namespace: z._default(z.string().check(z.maxLength(LONGEST_NAME, 'is too long')), ''),
    subResource: z._default(z.string(), ''),
    dryRun: z._default(z.boolean(), false),
    object: z.optional(z.unknown()),
    oldObject: z.optional(z.unknown()),
  }),
});

/** What an API server asks. */
export interface Review {
  readonly uid: string;
  readonly namespace: string;
  readonly operation: 'CREATE' | 'UPDATE';
  readonly dryRun: boolean;
  readonly service: Service;
  /** Of an update. */
  readonly oldService?: Service;
}

/** A review of something that gets no addresses: it is allowed as it is. */
export interface OtherReview {
  readonly uid: string;
  readonly other: string;
}

export type ReviewResponse =
  | { readonly allowed: true; readonly patch?: readonly PatchOperation[] }
  | { readonly allowed: false; readonly status: RefusalStatus };

/** Or what is wrong with it, for the log and the sender. */
export function reviewIn(text: string): Review | OtherReview | { readonly fault: string } {
  const parsed = review.safeParse(jsonIn(text));
  if (!parsed.success) return faultOf('the body', parsed.error.issues);
  const { uid, kind, operation, namespace, subResource, dryRun, object, oldObject } = parsed.data.request;
  const isService = kind.group === '' && kind.version === 'v1' && kind.kind === 'Service' && subResource === '';
  if (!isService || (operation !== 'CREATE' && operation !== 'UPDATE')) {
    return { uid, other: `${operation} ${kind.kind}${subResource && `/${subResource}`}`.slice(0, LONGEST_NAME) };
  }
  const service = serviceShape.safeParse(object);
  if (!service.success) return faultOf('request.object', service.error.issues);
  const common = { uid, namespace, dryRun, service: service.data };
  if (operation === 'CREATE') return { ...common, operation };
  const oldService = serviceShape.safeParse(oldObject);
  if (!oldService.success) return faultOf('request.oldObject', oldService.error.issues);
  return { ...common, operation, oldService: oldService.data };
}

export function reviewReply(uid: string, answer: ReviewResponse): object {
  return { apiVersion: API_VERSION, kind: KIND, response: { uid, ...responseOf(answer) } };
}

function responseOf(answer: ReviewResponse): object {
  if (!answer.allowed) return { allowed: false, status: answer.status };
  const { patch = [] } = answer;
  if (patch.length === 0) return { allowed: true };
  return { allowed: true, patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') };
}

/** `undefined` for what is no JSON, which is no review either. */
function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function faultOf(what: string, [issue]: readonly z.core.$ZodIssue[]): { readonly fault: string } {
  const path = issue === undefined ? [] : issue.path;
  const at = path.length === 0 ? what : `${path.join('.')} of ${what}`;
  const wrong = issue?.code === 'invalid_type' ? `is not of type ${issue.expected}` : (issue?.message ?? 'is wrong');
  return { fault: `${at} ${wrong}`.slice(0, 2 * LONGEST_NAME) };
}
