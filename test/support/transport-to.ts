import type { HttpReply } from '../../lib/kubernetes/http-client.ts';
import { httpsProber } from '../../lib/kubernetes/https-prober.ts';
import { type ApiServerAccess, parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { BytesInFlight, readWhole } from '../../lib/kubernetes/reply-bounds.ts';
import { ApiServerConnections } from '../../lib/kubernetes/transport.ts';
import { afterThisTest } from './after-this-test.ts';
import { kubeconfigTo } from './kubeconfig-to.ts';

export function accessTo(url: string, options?: Parameters<typeof kubeconfigTo>[1]): Promise<ApiServerAccess> {
  return parseKubeconfig(kubeconfigTo(url, options), 'of the test');
}

/** Returns a transport whose connections are closed after the test. */
export function transportWith(access: ApiServerAccess) {
  const connections = new ApiServerConnections();
  afterThisTest(() => connections.close());
  return connections.transport(access);
}

export function proberWith(access: ApiServerAccess) {
  return httpsProber({ access, deadline: new AbortController().signal, userAgent: 'test' });
}

export async function textOf(body: HttpReply['body']): Promise<string> {
  return new TextDecoder().decode(await readWhole(body, 'the test', new BytesInFlight()));
}
