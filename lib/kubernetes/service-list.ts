import * as z from 'zod/mini';
import { HOLD_OWNER_LABEL } from '../cluster/hold.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import type { Answer } from './api-calls.ts';
import type { ClusterPort } from './cluster-port.ts';
import { MalformedProtobuf } from './protobuf.ts';
import { type CallSite, listIn, malformed, NO_VERSION, PART_OF_A_LIST, tooLarge } from './replies.ts';
import { LONGEST_CLAIM_TEXT, MOST_CLUSTER_IPS, MOST_PORTS, OverBound } from './reply-bounds.ts';
import { ProtobufServiceList } from './service-protobuf.ts';

const PROTOBUF_OR_JSON = 'application/vnd.kubernetes.protobuf, application/json';
const JSON_ONLY = 'application/json';
const LARGEST_LIST_BYTES = 256 * 1024 * 1024;
const MOST_SERVICES = 200_000;

/**
 * The Services of a cluster in one list without a limit: protobuf is read while it arrives; JSON, of a server without
 * protobuf, like any other reply. It is requested without a resourceVersion: an answer that may be stale could miss a
 * Service that has its address already.
 * @param list GET with the given Accept header
 */
export async function* listedServices(
  list: (accept: string) => Promise<Answer>,
  site: CallSite,
): AsyncGenerator<ServiceClaim> {
  let reply = await list(PROTOBUF_OR_JSON);
  if (reply.status === 406) reply = await list(JSON_ONLY);
  try {
    const services = reply.stream ? servicesIn(reply.stream, site) : listIn(reply, 'Service', site).map(claimInJson);
    for await (const service of services) {
      if (service.name === '' || service.namespace === '')
        throw malformed(site, 'a Service without a name or a namespace');
      yield service;
    }
  } catch (error) {
    if (error instanceof OverBound) throw tooLarge(site, error);
    const known = error instanceof MalformedProtobuf || error instanceof MalformedServiceList;
    throw known ? malformed(site, error.message, error) : error;
  }
}

async function* servicesIn(stream: AsyncIterable<Uint8Array>, site: CallSite): AsyncGenerator<ServiceClaim> {
  const reader = new ProtobufServiceList();
  let bytes = 0;
  let services = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > LARGEST_LIST_BYTES) throw new OverBound(`more than ${LARGEST_LIST_BYTES / 1024 / 1024} MiB`);
    for (const service of reader.push(chunk)) {
      services += 1;
      if (services > MOST_SERVICES) throw new OverBound(`more than ${MOST_SERVICES} Services`);
      yield service;
    }
  }
  const { resourceVersion, continueToken } = reader.end();
  if (resourceVersion === '') throw malformed(site, NO_VERSION);
  if (continueToken !== '') throw malformed(site, PART_OF_A_LIST);
}

/** A Service of a list is not what the API sends. */
class MalformedServiceList extends Error {
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
function claimInJson(item: unknown): ServiceClaim {
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

/** Every Service of the cluster, for a command that shows some of them. A pass reads them one by one. */
export async function listAllServices(port: Pick<ClusterPort, 'services'>): Promise<ServiceClaim[]> {
  const services: ServiceClaim[] = [];
  for await (const service of port.services()) {
    services.push(service);
  }
  return services;
}
