import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';

export interface StoredService extends KubernetesObject {
  readonly spec: object;
}

/** A Service as etcd holds it, whatever an API server would say of its spec. */
export function storedService(namespace: string, name: string, spec: object): StoredService {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace, name, uid: `uid-of-${namespace}-${name}`, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec,
  };
}
