import type { V1ObjectMeta } from '@kubernetes/client-node';

/** JSON as the API server sent it, including unknown fields. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [field: string]: Json | undefined };

/** A type of `@kubernetes/client-node` as it is in JSON, where times are strings. */
export type FromJson<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? readonly FromJson<Item>[]
    : T extends object
      ? { readonly [Field in keyof T]: FromJson<T[Field]> }
      : T;

export interface KubernetesObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: FromJson<V1ObjectMeta> & { readonly name: string };
}

/** A whole object, including the fields that client-node does not know, because an update must keep them. */
export type WholeObject<T> = Omit<FromJson<T>, keyof KubernetesObject> & KubernetesObject;

/** The fields of a Service that allocation depends on. An absent list is empty, and an absent number is 0. */
export interface ServiceClaim {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly type: string;
  readonly clusterIP: string;
  readonly clusterIPs: readonly string[];
  /** The ports that have a node port. */
  readonly ports: readonly { readonly protocol: string; readonly nodePort: number }[];
  readonly healthCheckNodePort: number;
  /** The value of the label `kube-bootstrap-controller/hold-owner`. The Service claims items that are held for this owner. */
  readonly holdOwner?: string;
  readonly createdAtMs: number;
}

/** An IPAddress: the record of a cluster IP (Kubernetes 1.33+). Its name is the canonical address. Absent texts are empty. */
export interface IPAddressRecord {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly createdAtMs: number;
  readonly family: string;
  readonly managedBy: string;
  readonly parent: {
    readonly group: string;
    readonly resource: string;
    readonly namespace: string;
    readonly name: string;
  };
}

export const FAMILY_LABEL = 'ipaddress.kubernetes.io/ip-family';
export const ADDRESS_MANAGED_BY_LABEL = 'ipaddress.kubernetes.io/managed-by';

/** A Service with this label claims the items that are held for the owner in the value of the label. */
export const HOLD_OWNER_LABEL = 'kube-bootstrap-controller/hold-owner';

/** The name of this project in `metadata.managedFields`, and in the label `managed-by` of our EndpointSlices. */
export const FIELD_MANAGER = 'kube-bootstrap-controller';
