import * as z from 'zod/mini';
import { SCHEDULE_SECONDS } from './schedules.ts';

/** What a spec that says no more than it must is given: the original's defaults, and our own for what it has not. */
export const SPEC_DEFAULTS = {
  allocator: 'apiserver',
  apiServers: [],
  serviceClusterIPRange: '10.0.0.0/24',
  serviceNodePortRange: '30000-32767',
  endpoints: { reconciler: 'lease', masterCount: 1, leaseSeconds: 15, reconcilePorts: true, extraPorts: [] },
  service: { port: 443, securePort: 6443, nodePort: 0, extraPorts: [], reconcile: false },
  systemNamespaces: ['kube-system', 'kube-public', 'default', 'kube-node-lease'],
  intervalSeconds: SCHEDULE_SECONDS,
  maxEventsPerPass: 50,
} as const;

/** The fields in the message are for whoever looks for the name that was meant. */
function mapping<Fields extends z.core.$ZodLooseShape>(fields: Fields) {
  return z.strictObject(fields, {
    error: ({ code }) => (code === 'unrecognized_keys' ? Object.keys(fields).join(' ') : undefined),
  });
}

const text = z.string().check(z.minLength(1));
const protocol = z._default(z.enum(['TCP', 'UDP', 'SCTP']), 'TCP');

const probe = mapping({
  url: z.exactOptional(text),
  path: z.exactOptional(text),
  serverName: z.exactOptional(text),
  authenticate: z._default(z.boolean(), false),
});

const apiServer = mapping({
  address: z.exactOptional(text),
  host: z.exactOptional(text),
  kind: z.exactOptional(z.enum(['server', 'shared'])),
  probe: z.prefault(probe, {}),
});

const kubeconfig = mapping({
  file: z.exactOptional(text),
  secretsManager: z.exactOptional(text),
  ssm: z.exactOptional(text),
  roleArn: z.exactOptional(text),
  context: z.exactOptional(text),
});

const endpointPort = mapping({ name: text, protocol, port: z.int() });

const servicePort = mapping({
  name: text,
  protocol,
  port: z.int(),
  targetPort: z.exactOptional(z.int()),
  nodePort: z.exactOptional(z.int()),
});

/** The YAML file with every default of {@link SPEC_DEFAULTS} filled in. What the values may be is for the rules. */
export const specShape = mapping({
  name: text,
  mode: z.enum(['observe', 'enforce']),
  allocator: z.enum(['table', 'apiserver']),
  kubeconfig,
  apiServers: z.array(apiServer),
  serviceClusterIPRange: z.union([z.string(), z.array(z.string())]),
  serviceNodePortRange: z.union([z.string(), z.int()]),
  endpoints: mapping({
    reconciler: z.enum(['lease', 'master-count', 'none'], {
      error: ({ input }) => (typeof input === 'string' ? `Reconciler not implemented: ${input}` : undefined),
    }),
    masterCount: z.int(),
    leaseSeconds: z.int(),
    reconcilePorts: z.boolean(),
    extraPorts: z.array(endpointPort),
  }),
  service: mapping({
    port: z.int(),
    securePort: z.int(),
    nodePort: z.int(),
    extraPorts: z.array(servicePort),
    reconcile: z.boolean(),
  }),
  systemNamespaces: z.array(text),
  intervalSeconds: mapping({
    'system-namespaces': z.int(),
    'kubernetes-service': z.int(),
    'cluster-ip-repair': z.int(),
    'node-port-repair': z.int(),
  }),
  maxEventsPerPass: z.int(),
  callerKeys: z.exactOptional(z.array(text)),
});

/** A spec whose shape is right. */
export type ShapedSpec = z.infer<typeof specShape>;

/** What is known of a value whose shape is not right everywhere: what is wrong is `undefined`, and nothing moved. */
type Draft<T> = T extends readonly (infer Item)[]
  ? readonly Draft<Item>[] | undefined
  : T extends object
    ? { readonly [Field in keyof T]?: Draft<T[Field]> } | undefined
    : T | undefined;

export type SpecDraft = NonNullable<Draft<ShapedSpec>>;
export type ServerDraft = NonNullable<NonNullable<SpecDraft['apiServers']>[number]>;
export type ServicePortDraft = NonNullable<NonNullable<NonNullable<SpecDraft['service']>['extraPorts']>[number]>;
