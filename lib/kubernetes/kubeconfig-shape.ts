import * as z from 'zod/mini';

/** Go decodes `null` as an absent field, and so does this. */
function optional<Shape extends z.core.SomeType>(shape: Shape) {
  return z.optional(z.nullable(shape));
}

const text = z.string();
const name = z.string().check(z.minLength(1));

const cluster = z.strictObject({
  server: name,
  'tls-server-name': optional(text),
  'insecure-skip-tls-verify': optional(z.boolean()),
  'certificate-authority': optional(text),
  'certificate-authority-data': optional(text),
  'proxy-url': optional(text),
  'disable-compression': optional(z.boolean()),
  extensions: z.optional(z.unknown()),
});

const user = z.strictObject({
  'client-certificate': optional(text),
  'client-certificate-data': optional(text),
  'client-key': optional(text),
  'client-key-data': optional(text),
  token: optional(text),
  tokenFile: optional(text),
  username: optional(text),
  password: optional(text),
  as: optional(text),
  'as-uid': optional(text),
  'as-groups': z.optional(z.unknown()),
  'as-user-extra': z.optional(z.unknown()),
  exec: optional(z.record(text, z.unknown())),
  'auth-provider': optional(z.record(text, z.unknown())),
  extensions: z.optional(z.unknown()),
});

const context = z.strictObject({
  cluster: name,
  user: optional(text),
  namespace: optional(text),
  extensions: z.optional(z.unknown()),
});

/** Every field of a kubeconfig, as `k8s.io/client-go/tools/clientcmd/api/v1` has them. There are no others. */
export const kubeconfigShape = z.strictObject({
  apiVersion: optional(text),
  kind: optional(text),
  preferences: z.optional(z.unknown()),
  extensions: z.optional(z.unknown()),
  'current-context': optional(text),
  clusters: z.array(z.strictObject({ name, cluster })),
  contexts: z.array(z.strictObject({ name, context })),
  users: optional(z.array(z.strictObject({ name, user: optional(user) }))),
});

export type Kubeconfig = z.infer<typeof kubeconfigShape>;
export type KubeconfigCluster = z.infer<typeof cluster>;
export type KubeconfigUser = z.infer<typeof user>;
