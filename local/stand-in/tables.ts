import type { ServicePort } from '../../lib/cluster/published-objects.ts';
import { formatAge } from '../../lib/util/age.ts';
import { jsonFieldsIn, jsonListIn, stringsIn } from './json.ts';
import type { StoredObject } from './object-store.ts';
import type { ServedResource } from './resources.ts';
import type { StoredServiceSpec } from './service-storage.ts';

// Columns and cells of `pkg/printers/internalversion/printers.go`. Other kinds have a name and an age.

interface Column {
  readonly name: string;
  readonly cell: (object: StoredObject, nowMs: number) => string;
}

const NAME: Column = { name: 'Name', cell: ({ metadata }) => metadata.name };
const AGE: Column = {
  name: 'Age',
  cell: ({ metadata: { creationTimestamp: at } }, nowMs) => (at ? formatAge(nowMs - Date.parse(at)) : '<unknown>'),
};

const COLUMNS: Readonly<Record<string, readonly Column[]>> = {
  Namespace: [NAME, { name: 'Status', cell: (object) => String(jsonFieldsIn(object['status'])['phase'] ?? '') }, AGE],
  Service: [
    NAME,
    { name: 'Type', cell: (object) => specOf(object).type ?? '' },
    { name: 'Cluster-IP', cell: (object) => specOf(object).clusterIPs?.[0] ?? '<none>' },
    { name: 'External-IP', cell: (object) => externalAddress(specOf(object)) },
    { name: 'Port(s)', cell: (object) => (specOf(object).ports ?? []).map(portText).join(',') || '<none>' },
    AGE,
  ],
  Endpoints: [NAME, { name: 'Endpoints', cell: (object) => addressesIn(object).join(',') || '<none>' }, AGE],
};

/** Returns the `Table` with the columns that `kubectl get` prints, and the metadata of each object. */
export function tableOf(
  { kind }: ServedResource,
  objects: readonly StoredObject[],
  metadata: object,
  nowMs: number,
): object {
  const columns = COLUMNS[kind] ?? [NAME, AGE];
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: columns.map(({ name }) => ({
      name,
      type: 'string',
      format: name === 'Name' ? 'name' : '',
      description: '',
      priority: 0,
    })),
    rows: objects.map((object) => ({
      cells: columns.map(({ cell }) => cell(object, nowMs)),
      object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata },
    })),
  };
}

function specOf(object: StoredObject): StoredServiceSpec {
  return jsonFieldsIn(object['spec']);
}

function externalAddress({ type, externalIPs, externalName }: StoredServiceSpec): string {
  if (type === 'ExternalName') return String(externalName);
  return stringsIn(externalIPs).join(',') || (type === 'LoadBalancer' ? '<pending>' : '<none>');
}

function portText({ port, nodePort = 0, protocol = 'TCP' }: ServicePort): string {
  return nodePort > 0 ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`;
}

function addressesIn(object: StoredObject): string[] {
  return jsonListIn(object['subsets']).flatMap(({ addresses, ports }) =>
    jsonListIn(ports).flatMap(({ port }) => jsonListIn(addresses).map(({ ip }) => `${ip}:${port}`)),
  );
}
