import { StatusError } from './resources.ts';

const PATH = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

/** The reply to a SelfSubjectAccessReview: everybody may do everything. `undefined` for any other request. */
export function reviewReply(method: string, path: string, body: string): object | undefined {
  if (path !== PATH || method !== 'POST') return undefined;
  const review = recordIn(body);
  const spec = recordIn(JSON.stringify(review['spec'] ?? null));
  if ('resourceAttributes' in spec === 'nonResourceAttributes' in spec) {
    const problem = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
    throw new StatusError(
      422,
      'Invalid',
      `SelfSubjectAccessReview.authorization.k8s.io "" is invalid: spec: ${problem}`,
    );
  }
  return {
    kind: 'SelfSubjectAccessReview',
    apiVersion: 'authorization.k8s.io/v1',
    metadata: {},
    spec,
    status: { allowed: true, reason: 'the stand-in knows no users' },
  };
}

function recordIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
