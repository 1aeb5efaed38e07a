import { type CertifiedKey, makeAuthority } from './certificates.ts';

/** How the stand-in API servers of one run know their callers, and the callers them. */
export interface Identity {
  /** The bearer token of every caller. */
  readonly key: string;
  /** PEM. */
  readonly ca: string;
  readonly certified: CertifiedKey;
}

/** With a certificate of its own, because kubectl sends no token over http://. */
export function newIdentity(key: string): Identity {
  const { ca, issue } = makeAuthority('kbctl run');
  return { key, ca, certified: issue(['127.0.0.1']) };
}

/** A kubeconfig for kubectl, kbctl and the loops. */
export function kubeconfigOf(name: string, server: string, { key, ca }: Pick<Identity, 'key' | 'ca'>): string {
  const cluster = { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') };
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster }],
    users: [{ name, user: { token: key } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  };
  return `${JSON.stringify(kubeconfig, undefined, 2)}\n`;
}

/** Options for `curl --config`: the key is in no command line, which every user of the machine can list. */
export function curlConfigOf({ key }: Pick<Identity, 'key'>, caFile: string): string {
  return [
    `cacert = ${JSON.stringify(caFile)}`,
    `header = "Authorization: Bearer ${key}"`,
    'header = "Content-Type: application/json"',
    '',
  ].join('\n');
}
