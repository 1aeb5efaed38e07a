import { parseAddress } from '../allocator/ip-address.ts';
import type { Mode } from '../cluster/cluster-spec.ts';
import type { HostResolver } from '../kubernetes/cluster-port.ts';
import { type CredentialEnd, credentialEnds, endsSoon } from '../kubernetes/credential-end.ts';
import type { ApiServerAccess } from '../kubernetes/kubeconfig.ts';
import {
  PERMISSION_GROUPS,
  type Permission,
  type PermissionGroup,
  permissionsOf,
  permissionText,
  type SelfReview,
} from '../kubernetes/permissions.ts';
import { type DoctorLine, fail, ok, warn } from './line.ts';

/** The kubeconfig itself: what it leads to, as whom, and until when. */
export async function checkKubeconfig(
  access: ApiServerAccess,
  place: string,
  nowMs: number,
): Promise<readonly DoctorLine[]> {
  const lines = [ok('kubeconfig', `read from ${place}: context ${access.context}, ${access.server}`)];
  if (access.skipTlsVerify) {
    const fix = 'Put certificate-authority-data in, and take insecure-skip-tls-verify out';
    lines.push(warn('kubeconfig', 'it says not to verify the certificate of the API server', fix));
  }
  const ends = await credentialEnds(access);
  if (ends.length === 0) lines.push(ok('token', 'the credential does not say when it ends'));
  return [...lines, ...ends.map((end) => endLine(end, nowMs))];
}

export function endLine(ending: CredentialEnd, nowMs: number): DoctorLine {
  const { what, endsMs } = ending;
  const fix = 'Renew it as docs/kubeconfig-secret.md says: the functions read the new one within five minutes';
  const end = new Date(endsMs).toISOString();
  if (endsMs <= nowMs) return fail('token', `the ${what} ended at ${end}`, fix);
  if (endsSoon(ending, nowMs)) return warn('token', `the ${what} ends at ${end}`, fix);
  return ok('token', `the ${what} ends at ${end}`);
}

/** Whether the API server's name is known here. */
export async function checkName(access: ApiServerAccess, resolve: HostResolver): Promise<readonly DoctorLine[]> {
  const host = new URL(access.server).hostname.replace(/^\[|\]$/g, '');
  if (parseAddress(host) !== undefined) return [ok('dns', `${host} is an address: no name is looked up`)];
  const addresses = await resolve(host);
  if (addresses !== undefined) return [ok('dns', `${host} is ${addresses.join(' ')}`)];
  const fix =
    'Correct the server in the kubeconfig, or its DNS records; in a VPC, associate the private hosted zone with it';
  return [fail('dns', `${host} has no address here`, fix)];
}

/** One request with certificate and credential. */
export async function checkApiServer({ server }: ApiServerAccess, review: SelfReview): Promise<readonly DoctorLine[]> {
  return [ok('api server', `${server} is Kubernetes ${await review.version()}, and takes the credential`)];
}

const READS: ReadonlySet<string> = new Set(['get', 'list']);
const APPLY = 'kubectl apply -f deploy/rbac.yaml, and use a token of its service account';
/** Whoever may do this can redirect any Service of the cluster. */
const TOO_MUCH: Permission = { verb: 'update', group: '', resource: 'endpoints', namespace: 'kube-system' };

/** Every verb that the loops need, and one that they must not have. */
export async function checkRights(review: SelfReview, mode: Mode): Promise<readonly DoctorLine[]> {
  const needed = PERMISSION_GROUPS.map((group) => checkGroup(group, review, mode));
  return [...(await Promise.all(needed)), ...(await lookBeyond(review))];
}

async function checkGroup(group: PermissionGroup, review: SelfReview, mode: Mode): Promise<DoctorLine> {
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
