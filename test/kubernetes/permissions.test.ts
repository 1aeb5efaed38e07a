import { expect, test } from '@jest/globals';
import { PERMISSION_GROUPS, permissionText, selfReview } from '../../lib/kubernetes/permissions.ts';
import { grantsOf, shippedRbac } from '../support/shipped-rbac.ts';
import { failed } from './port-answering.ts';

const objects = shippedRbac();

test('deploy/rbac.yaml grants exactly the permissions that the loops need', () => {
  const needed = PERMISSION_GROUPS.flatMap(({ permissions }) => permissions).map(permissionText);
  expect(objects.flatMap(grantsOf).map(permissionText).sort()).toEqual(needed.sort());
});

test('deploy/rbac.yaml binds each role only to the service account kube-bootstrap-controller', () => {
  const account = { kind: 'ServiceAccount', name: 'kube-bootstrap-controller', namespace: 'kube-system' };
  const bindings = objects.filter(({ kind }) => kind.endsWith('RoleBinding'));
  const apiGroup = 'rbac.authorization.k8s.io';
  expect(bindings).toMatchObject([
    { kind: 'RoleBinding', roleRef: { apiGroup, kind: 'Role' }, subjects: [account] },
    { kind: 'ClusterRoleBinding', roleRef: { apiGroup, kind: 'ClusterRole' }, subjects: [account] },
  ]);
  const { name, namespace } = account;
  expect(objects.find(({ kind }) => kind === 'ServiceAccount')?.metadata).toMatchObject({ name, namespace });
});

test('the user name is read from the error message if an anonymous user is not allowed to create a SelfSubjectReview', async () => {
  const message =
    'selfsubjectreviews.authentication.k8s.io is forbidden: User "system:anonymous" cannot create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope';
  const replied = (text: string) => {
    const transport = async () => failed(403, 'Forbidden', text);
    const deadline = AbortSignal.timeout(10_000);
    return selfReview({ transport, server: 'https://10.0.0.1', deadline, userAgent: 'test' }).user();
  };
  await expect(replied(message)).resolves.toBe('system:anonymous');
  await expect(replied('no')).resolves.toBeUndefined();
});
