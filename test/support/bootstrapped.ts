import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import type { KubeApiserver } from './control-plane.ts';
import { eventually } from './eventually.ts';
import { SERVICE_PATH } from './kubernetes-service-objects.ts';

const NAMESPACES = ['default', 'kube-node-lease', 'kube-public', 'kube-system'].map(
  (name) => `/api/v1/namespaces/${name}`,
);
const SERVICE_CIDR = '/apis/networking.k8s.io/v1/servicecidrs/kubernetes';

interface ServiceCidr extends KubernetesObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/**
 * Waits until a stock API server has created its own objects: its namespaces, the ServiceCIDR with its status, and the Service
 * `default/kubernetes`. An API server is ready before it has created them all. After this call, the API server does not change
 * them.
 */
export async function untilBootstrapped({ request }: Pick<KubeApiserver, 'request'>): Promise<void> {
  await eventually(async () => {
    for (const path of [...NAMESPACES, SERVICE_PATH]) {
      if ((await request('GET', path)).status !== 200) throw new Error(`${path} is not there yet`);
    }
    const { body } = await request<ServiceCidr>('GET', SERVICE_CIDR);
    const isReady = body.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
    if (isReady !== true) throw new Error(`${SERVICE_CIDR} is not said to be ready yet`);
  });
}
