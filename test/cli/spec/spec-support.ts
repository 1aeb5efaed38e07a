import { validateClusterSpec } from '../../../cli/spec/parse-cluster-spec.ts';

/** The required fields of a spec. All other fields have their defaults. */
export const minimal = {
  name: 'prod-1',
  mode: 'observe',
  kubeconfig: { file: './admin.kubeconfig' },
  apiServers: [{ address: '203.0.113.10' }],
};

export function aSpec(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return { ...minimal, ...fields };
}

export function faultsOf(value: unknown): string[] {
  const result = validateClusterSpec(value);
  return 'faults' in result ? result.faults.map(({ path, message }) => `${path}: ${message}`) : [];
}
