import type { RequestListener } from 'node:http';
import { beforeAll, expect } from '@jest/globals';
import type { V1IPAddress } from '@kubernetes/client-node';
import type { WholeObject } from '../../lib/cluster/kubernetes-objects.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import {
  type Etcd,
  type KubeApiserver,
  type KubeApiserverOptions,
  startEtcd,
  startKubeApiserver,
} from '../support/control-plane.ts';
import { type Handlers, type HandlersOptions, startHandlers } from '../support/handlers.ts';
import { running } from '../support/running.ts';
import { serve } from '../support/serve.ts';

export const SERVICES = '/api/v1/namespaces/default/services';
export const SERVICE_CIDRS = '/apis/networking.k8s.io/v1/servicecidrs';
export const IP_ADDRESSES = '/apis/networking.k8s.io/v1/ipaddresses';

/** Starts an etcd and an API server before the tests and stops both after them. */
export function runningControlPlane(options: Omit<KubeApiserverOptions, 'etcd'> = {}): {
  etcd: Etcd;
  apiserver: KubeApiserver;
} {
  const etcd = running(startEtcd);
  return { etcd, apiserver: running(() => startKubeApiserver({ ...options, etcd })) };
}

/** Calls `options` and starts handlers with the result before the tests, and closes the handlers after the tests. */
export function runningHandlers(options: () => HandlersOptions | Promise<HandlersOptions>): Handlers {
  return running(async () => startHandlers(await options()));
}

/**
 * Starts a control plane in which only the loops create objects, and only passes with `repair.ipAddresses` repair IPAddresses. There
 * is no kube-controller-manager, so that no other program waits until a ServiceCIDR is unused.
 */
export function runningWithoutHooks(serviceClusterIPRange: string) {
  const { etcd, apiserver } = runningControlPlane({ hooksOff: true, serviceClusterIPRange });
  const spec = () => ({
    serviceClusterIPRange,
    repair: { ipAddresses: true },
    apiServers: [{ address: '10.9.8.7', probe: { url: `${apiserver.url}/readyz` } }],
    service: { securePort: apiserver.port },
  });
  const handlers = runningHandlers(() => ({ kubeconfigFile: apiserver.kubeconfigFile, spec: spec() }));
  beforeAll(async () => {
    for (const loop of ['system-namespaces', 'kubernetes-service', 'cluster-ip-repair'] as const) {
      expect(await handlers.run(loop)).toMatchObject({ errors: [] });
    }
  });
  return { etcd, apiserver, handlers, spec };
}

/** Starts a webhook before the tests. `register` makes an API server call it for requests that match the rule. */
export function runningWebhook(listener: RequestListener) {
  const authority = makeAuthority('webhook of the test');
  const webhook = running(() => serve(listener, authority.issue(['127.0.0.1'])));
  const register = (apiserver: KubeApiserver, rule: object, fields: object) => {
    const clientConfig = { url: webhook.url, caBundle: Buffer.from(authority.ca).toString('base64') };
    const fixed = { name: 'slow.example.com', sideEffects: 'None', admissionReviewVersions: ['v1'], clientConfig };
    return apiserver.send('POST', '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations', {
      metadata: { name: 'slow' },
      webhooks: [{ ...fixed, rules: [{ apiVersions: ['v1'], ...rule }], ...fields }],
    });
  };
  return { webhook, register };
}

/** Returns the reference of each IPAddress to its parent, by address. */
export async function parentsOf({ send }: KubeApiserver): Promise<Map<string, V1IPAddress['spec']['parentRef']>> {
  const { items } = await send<{ items: WholeObject<V1IPAddress>[] }>('GET', IP_ADDRESSES);
  return new Map(items.map(({ metadata, spec }) => [metadata.name, spec.parentRef]));
}

/** Repeats `step` until `work` ends. */
export async function repeatDuring(work: Promise<unknown>, step: () => Promise<unknown>): Promise<void> {
  let isWorking = true;
  const done = work.finally(() => {
    isWorking = false;
  });
  while (isWorking) await step();
  await done;
}
