import type { Permission } from './access-review.ts';

/** Permissions that belong together, as `deploy/rbac.yaml` grants them. */
export interface PermissionGroup {
  readonly about: string;
  readonly group: string;
  readonly resource: string;
  readonly namespace?: string;
  readonly rules: readonly {
    readonly verbs: readonly string[];
    /** The only object that it is for; `list` and `create` know no names. */
    readonly name?: string;
  }[];
}

const KUBERNETES = 'kubernetes';

/** All that the loops ask of an API server, and nothing else. */
export const PERMISSION_GROUPS: readonly PermissionGroup[] = [
  {
    about: 'the kubernetes Service',
    group: '',
    resource: 'services',
    namespace: 'default',
    rules: [{ verbs: ['create'] }, { verbs: ['get', 'update'], name: KUBERNETES }],
  },
  {
    about: 'its endpoints',
    group: '',
    resource: 'endpoints',
    namespace: 'default',
    rules: [{ verbs: ['create'] }, { verbs: ['get', 'update'], name: KUBERNETES }],
  },
  {
    about: 'its endpoint slices',
    group: 'discovery.k8s.io',
    resource: 'endpointslices',
    namespace: 'default',
    rules: [{ verbs: ['create', 'list'] }, { verbs: ['delete', 'get', 'update'], name: KUBERNETES }],
  },
  { about: 'repair', group: '', resource: 'services', rules: [{ verbs: ['list'] }] },
  { about: 'system namespaces', group: '', resource: 'namespaces', rules: [{ verbs: ['create', 'get'] }] },
  { about: 'events', group: 'events.k8s.io', resource: 'events', rules: [{ verbs: ['create', 'patch'] }] },
  {
    about: 'the default ServiceCIDR',
    group: 'networking.k8s.io',
    resource: 'servicecidrs',
    rules: [{ verbs: ['create'] }, { verbs: ['get'], name: KUBERNETES }],
  },
];

export function permissionsOf({ group, resource, namespace, rules }: PermissionGroup): Permission[] {
  return rules.flatMap(({ verbs, name }) =>
    verbs.map((verb) => ({
      verb,
      group,
      resource,
      ...(namespace !== undefined && { namespace }),
      ...(name !== undefined && { name }),
    })),
  );
}
