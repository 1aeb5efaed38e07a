import type { Mode } from '../cluster/cluster-spec.ts';
import { type Permission, permissionText, type SelfReview } from '../kubernetes/access-review.ts';
import { PERMISSION_GROUPS, type PermissionGroup, permissionsOf } from '../kubernetes/permissions.ts';
import { type DoctorLine, fail, ok, warn } from './line.ts';

const READS: ReadonlySet<string> = new Set(['get', 'list']);
const APPLY = 'kubectl apply -f deploy/rbac.yaml, and use a token of its service account';
/** Whoever may do this can redirect any Service of the cluster. */
const TOO_MUCH: Permission = { verb: 'update', group: '', resource: 'endpoints', namespace: 'kube-system' };

/** Every verb that the loops need, and one that they must not have. */
export async function lookAtRights(review: SelfReview, mode: Mode): Promise<readonly DoctorLine[]> {
  const needed = PERMISSION_GROUPS.map((group) => lookAtGroup(group, review, mode));
  return [...(await Promise.all(needed)), ...(await lookBeyond(review))];
}

async function lookAtGroup(group: PermissionGroup, review: SelfReview, mode: Mode): Promise<DoctorLine> {
  const permissions = permissionsOf(group);
  const allowed = await Promise.all(permissions.map((permission) => review.allows(permission)));
  const missing = permissions.filter((_, index) => !allowed[index]);
  if (missing.length === 0) return ok('rights', `${group.about}: may ${verbs(permissions)} ${place(group)}`);
  const message = `${group.about}: may not ${missing.map(permissionText).join(', ')}`;
  const onlyObserved = mode === 'observe' && missing.every(({ verb }) => !READS.has(verb));
  return onlyObserved ? warn('rights', `${message}, which enforce needs`, APPLY) : fail('rights', message, APPLY);
}

async function lookBeyond(review: SelfReview): Promise<readonly DoctorLine[]> {
  if (!(await review.allows(TOO_MUCH))) return [];
  const message = `may ${permissionText(TOO_MUCH)}: with that, whoever holds the credential redirects any Service`;
  return [warn('rights', message, APPLY)];
}

function verbs(permissions: readonly Permission[]): string {
  return permissions
    .map(({ verb }) => verb)
    .sort()
    .join(', ');
}

function place({ group, resource, namespace }: PermissionGroup): string {
  return permissionText({ verb: '', group, resource, ...(namespace !== undefined && { namespace }) }).trim();
}
