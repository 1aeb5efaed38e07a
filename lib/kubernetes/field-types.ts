import { isRecord, type JsonRecord } from '../util/values.ts';
import type { Kind } from './cluster-port.ts';

/** Types of the fields that passes read; a proxy may send other types. `[]`: the items of a list; `!`: a required field. */
const TYPES: Readonly<Partial<Record<Kind, Readonly<Record<string, 'object' | 'text'>>>>> = {
  Service: { spec: 'object', 'spec.clusterIP': 'text', 'spec.clusterIPs.[]': 'text', 'spec.ports.[]': 'object' },
  Endpoints: {
    'subsets.[].addresses.[].ip!': 'text',
    'subsets.[].notReadyAddresses.[].ip!': 'text',
    'subsets.[].ports.[]': 'object',
  },
  EndpointSlice: { 'endpoints.[].addresses.[]': 'text', 'ports.[]': 'object' },
  ServiceCIDR: { 'spec.cidrs!.[]': 'text', 'spec!': 'object', 'status.conditions.[]': 'object' },
};

/** Returns the first field that is missing or does not have the API's type; `undefined` if all fields are valid. */
export function wrongField(kind: Kind, object: JsonRecord): string | undefined {
  const fields = Object.entries(TYPES[kind] ?? {});
  const wrong = fields.find(([path, type]) => isWrong(object, path.split('.'), type));
  return wrong?.[0].replaceAll('.[]', '[]').replaceAll('!', '');
}

function isWrong(value: unknown, [step, ...rest]: readonly string[], type: 'object' | 'text'): boolean {
  if (step === '[]') return !Array.isArray(value) || value.some((item) => isWrong(item, rest, type));
  if (step === undefined) return type === 'text' ? typeof value !== 'string' : !isRecord(value);
  if (!isRecord(value)) return true;
  const field = value[step.replace('!', '')];
  return field === undefined ? step.endsWith('!') : isWrong(field, rest, type);
}

/** Returns the object as an API server reads it: a field that is null is absent, and an absent `spec` of a Service is empty. */
export function asRead(kind: Kind, object: JsonRecord): JsonRecord {
  return { ...(kind === 'Service' && { spec: {} }), ...Object(withoutNulls(object)) };
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isRecord(value)) return value;
  const fields = Object.entries(value).filter(([, field]) => field !== null);
  return Object.fromEntries(fields.map(([name, field]) => [name, withoutNulls(field)]));
}
