import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import type { Answer } from './api-calls.ts';
import type { ClusterPort } from './cluster-port.ts';
import { ClusterError } from './errors.ts';
import { MalformedProtobuf } from './protobuf-reader.ts';
import type { CallSite } from './replies.ts';
import { isProtobuf, jsonOf, malformed, refused } from './replies.ts';
import { MalformedServiceList, serviceListFromJson } from './service-json.ts';
import type { ServicePage } from './service-protobuf.ts';
import { readServiceList } from './service-protobuf.ts';

/** GET with the given query and Accept header. */
export type ListCall = (query: string, accept: string) => Promise<Answer>;

const PROTOBUF_OR_JSON = 'application/vnd.kubernetes.protobuf, application/json';
const START_OVER = 'The list has to be started over; the next pass does.';
const JSON_ONLY = 'application/json';

/**
 * The Services of a cluster, page by page. The first page is asked for without a resourceVersion: a list from the
 * watch cache may be behind a Service that has its address already. Throws `Expired` when the server no longer has the
 * list's snapshot.
 */
export async function* servicePages(list: ListCall, site: CallSite, limit: number): AsyncGenerator<ServiceClaim[]> {
  let accept = PROTOBUF_OR_JSON;
  let query = `limit=${limit}`;
  let resourceVersion: string | undefined;
  let previousToken = '';
  for (;;) {
    let reply = await list(query, accept);
    if (reply.status === 406) {
      accept = JSON_ONLY;
      reply = await list(query, accept);
    }
    const page = pageOf(reply, site);
    if (page.continueToken !== '' && page.continueToken === previousToken) {
      throw malformed(site, 'a page that continues with itself');
    }
    if (resourceVersion !== undefined && resourceVersion !== page.resourceVersion) {
      throw new ClusterError(
        'Expired',
        `${site.server} went on with another snapshot in "${site.purpose}". ${START_OVER}`,
      );
    }
    yield page.services;
    if (page.continueToken === '') {
      return;
    }
    ({ resourceVersion, continueToken: previousToken } = page);
    query = `limit=${limit}&continue=${encodeURIComponent(page.continueToken)}`;
  }
}

function pageOf(reply: Answer, site: CallSite): ServicePage {
  if (reply.status !== 200) {
    throw refused(site, reply);
  }
  const page = decoded(reply, site);
  if (page.resourceVersion === '') {
    throw malformed(site, 'a list without a resourceVersion');
  }
  const nameless = page.services.find((service) => service.name === '' || service.namespace === '');
  if (nameless !== undefined) {
    throw malformed(site, 'a Service without a name or a namespace');
  }
  return page;
}

function decoded(reply: Answer, site: CallSite): ServicePage {
  try {
    return isProtobuf(reply) ? readServiceList(reply.body) : serviceListFromJson(jsonOf(reply));
  } catch (error) {
    const known = error instanceof MalformedProtobuf || error instanceof MalformedServiceList;
    throw known ? malformed(site, error.message, error) : error;
  }
}

/**
 * Every Service of the cluster. A list whose snapshot ended in the middle is dropped and started over, three times in
 * all; then the call throws `Expired`.
 */
export async function listAllServices(port: Pick<ClusterPort, 'services'>, tries = 3): Promise<ServiceClaim[]> {
  for (let attempt = 1; ; attempt += 1) {
    const services: ServiceClaim[] = [];
    try {
      for await (const service of port.services()) {
        services.push(service);
      }
      return services;
    } catch (error) {
      if (attempt >= tries || !(error instanceof ClusterError && error.code === 'Expired')) {
        throw error;
      }
    }
  }
}
