/** Returns a kubeconfig as text. It has no credential unless `user` has one. @param ca PEM certificates of one or more CAs */
export function kubeconfigTo(
  server: string,
  { ca, cluster = {}, user = {} }: { readonly ca?: string; readonly cluster?: object; readonly user?: object } = {},
): string {
  const trusted = ca !== undefined && { 'certificate-authority-data': Buffer.from(ca).toString('base64') };
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'there', cluster: { server, ...trusted, ...cluster } }],
    users: [{ name: 'user', user }],
    contexts: [{ name: 'there', context: { cluster: 'there', user: 'user' } }],
    'current-context': 'there',
  });
}
