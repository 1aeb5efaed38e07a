import * as z from 'zod/mini';
import { HOLD_OWNER_LABEL } from '../cluster/hold.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { LONGEST_CLAIM_TEXT, MOST_CLUSTER_IPS, MOST_PORTS, OverBound } from './reply-bounds.ts';

/** A Service of a list is not what the API sends. */
export class MalformedServiceList extends Error {
  override readonly name = 'MalformedServiceList';
}

/** A field that is absent, or null, is empty. */
function orEmpty<Shape extends z.core.$ZodType>(shape: Shape, empty: unknown) {
  return z.pipe(
    z.transform((value: unknown) => value ?? empty),
    shape,
  );
}

function listOf<Shape extends z.core.$ZodType>(shape: Shape, most: number) {
  return orEmpty(z.array(shape).check(z.maxLength(most)), []);
}

const text = orEmpty(z.string().check(z.maxLength(LONGEST_CLAIM_TEXT)), '');
const whole = orEmpty(z.int(), 0);
const labels = z.object({ [HOLD_OWNER_LABEL]: z.optional(text) });
const metadata = z.object({
  name: text,
  namespace: text,
  uid: text,
  resourceVersion: text,
  labels: orEmpty(labels, {}),
});
const spec = z.object({
  type: text,
  clusterIP: text,
  clusterIPs: listOf(text, MOST_CLUSTER_IPS),
  ports: listOf(z.object({ protocol: text, nodePort: whole }), MOST_PORTS),
  healthCheckNodePort: whole,
});
const service = z.object({ metadata, spec: orEmpty(spec, {}) });

/**
 * Reads a Service from JSON. Throws `MalformedServiceList`, and `OverBound`. A field of the wrong type is an error, never a
 * default: an address that is not read would pass for a free one.
 */
export function claimInJson(item: unknown): ServiceClaim {
  const { data, error } = service.safeParse(item);
  if (data === undefined) throw faultOf(error?.issues[0]);
  const { labels: ofService, ...names } = data.metadata;
  const holdOwner = ofService[HOLD_OWNER_LABEL];
  return { ...names, ...data.spec, ...(holdOwner !== undefined && { holdOwner }) };
}

function faultOf(issue: z.core.$ZodIssue | undefined): Error {
  const place = issue?.path.join('.');
  if (issue?.code === 'too_big')
    return new OverBound(`a Service with more than ${issue.maximum} entries or characters in ${place}`);
  return new MalformedServiceList(`${place} of a Service has the wrong type`);
}
