import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import type { Answer } from './api-calls.ts';
import type { ClusterPort } from './cluster-port.ts';
import { MalformedProtobuf } from './protobuf.ts';
import { type CallSite, listIn, malformed, NO_VERSION, PART_OF_A_LIST, tooLarge } from './replies.ts';
import { OverBound } from './reply-bounds.ts';
import { claimInJson, MalformedServiceList } from './service-json.ts';
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

/** Every Service of the cluster, for a command that shows some of them. A pass reads them one by one. */
export async function listAllServices(port: Pick<ClusterPort, 'services'>): Promise<ServiceClaim[]> {
  const services: ServiceClaim[] = [];
  for await (const service of port.services()) {
    services.push(service);
  }
  return services;
}
