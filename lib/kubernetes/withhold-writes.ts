import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import { describePublished } from '../endpoints/objects.ts';
import { type ClusterPort, describeRef, refOf } from './cluster-port.ts';

/**
 * Returns a port that reads like `port` and writes nothing: each write is reported (`create Namespace kube-system`) and
 * answered as withheld.
 */
export function withholdWrites(port: ClusterPort, wouldWrite: (description: string) => void): ClusterPort {
  const withheld = async <T extends KubernetesObject>(verb: 'create' | 'update', object: T) => {
    wouldWrite(`${verb} ${describeRef(refOf(object))}${describePublished(object)}`);
    return { outcome: 'withheld', object } as const;
  };
  return {
    get: (ref) => port.get(ref),
    list: (kind, namespace, labelSelector) => port.list(kind, namespace, labelSelector),
    services: (selection) => port.services(selection),
    ipAddresses: () => port.ipAddresses(),
    create: (object) => withheld('create', object),
    update: (object) => withheld('update', object),
    mergePatch: async (ref) => {
      wouldWrite(`patch ${describeRef(ref)}`);
      return { outcome: 'withheld' };
    },
    delete: async (object) => {
      wouldWrite(`delete ${describeRef(refOf(object))}`);
      return 'withheld';
    },
  };
}
