import { type Kind, RESOURCES } from '../../lib/kubernetes/cluster-port.ts';

const isMapping = (field: string) => ['metadata.labels', 'metadata.annotations'].includes(field);

/** An object of the kind, in JSON as an API server sends it, with so many entries in a field of `BOUNDS`. */
export function objectOf(kind: Kind, field: string, entries: number): Record<string, unknown> {
  const { apiVersion, namespaced } = RESOURCES[kind];
  const metadata = { name: 'kubernetes', ...(namespaced && { namespace: 'default' }), resourceVersion: '7', uid: 'u' };
  const content: unknown = isMapping(field)
    ? Object.fromEntries(Array.from({ length: entries }, (_, index) => [`k${index}`, '']))
    : Array.from({ length: entries }, (_, index) => ({ name: `n${index}` }));
  const value = field
    .replaceAll('[]', '.[]')
    .split('.')
    .reduceRight<unknown>((inner, step) => (step === '[]' ? [inner] : { [step]: inner }), content);
  const object = value as Record<string, object>;
  return { kind, apiVersion, ...object, metadata: { ...metadata, ...object['metadata'] } };
}
