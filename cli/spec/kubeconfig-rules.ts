import { SERVER_URL } from '../../lib/spec/spec-parts.ts';
import { isAudienceOfSts, isLocalHost } from '../../lib/util/hosts.ts';
import type { Report, SpecPath } from './spec-fault.ts';
import type { SpecDraft } from './spec-shape.ts';

const STORES = ['file', 'secretsManager', 'ssm'] as const;
const SOURCES = [...STORES, 'webIdentity'] as const;
type Store = (typeof STORES)[number];

/** The names that `CreateSecret` and `PutParameter` accept, and ARNs of secrets and parameters. */
const SECRET_NAME = /^[\w/+=.@-]{1,512}$/;
const PARAMETER_NAME = /^[\w./-]{1,1011}$/;
const SECRET_ARN = /^arn:aws[\w-]*:secretsmanager:[\w-]+:\d{12}:secret:[\w/+=.@-]+$/;
const PARAMETER_ARN = /^arn:aws[\w-]*:ssm:[\w-]+:\d{12}:parameter\/[\w./-]+$/;
const ROLE_ARN = /^arn:aws[\w-]*:iam::\d{12}:role\/[\w+=,.@/-]+$/;

export function checkKubeconfigField(at: SpecPath, kubeconfig: SpecDraft['kubeconfig'], report: Report): void {
  if (kubeconfig === undefined) return;
  const found = SOURCES.filter((source) => source in kubeconfig);
  const [source] = found;
  if (source === undefined) {
    const fix = 'write secretsManager: the name of a secret';
    report(at, 'has neither file, secretsManager, ssm nor webIdentity', fix);
  } else if (found.length > 1) {
    report(at, `has both ${found.join(' and ')}`, 'keep the one to read from');
  } else if (source === 'webIdentity') {
    checkWebIdentity([...at, source], kubeconfig, report);
    for (const field of (['roleArn', 'context'] as const).filter((each) => kubeconfig[each] !== undefined)) {
      report([...at, field], 'has no meaning beside webIdentity', 'leave it out');
    }
  } else {
    checkStoredName([...at, source], source, kubeconfig[source], report);
    checkRole([...at, 'roleArn'], source, kubeconfig.roleArn, report);
  }
}

function checkWebIdentity(at: SpecPath, { webIdentity }: NonNullable<SpecDraft['kubeconfig']>, report: Report): void {
  const { server, certificateAuthorityData: ca } = webIdentity ?? {};
  const problem = server === undefined ? undefined : serverProblem(server);
  if (problem !== undefined) {
    report([...at, 'server'], `${JSON.stringify(server)} ${problem}`, 'write one such as https://203.0.113.10:6443');
  }
  if (ca !== undefined && !Buffer.from(ca, 'base64').includes('-----BEGIN CERTIFICATE-----')) {
    const fix = 'copy certificate-authority-data from: kubectl config view --raw --flatten';
    report([...at, 'certificateAuthorityData'], 'is not a PEM certificate in base64', fix);
  }
}

function serverProblem(server: string): string | undefined {
  const url = SERVER_URL.test(server) ? URL.parse(server) : null;
  if (url === null) return 'is not an https URL of an API server';
  if (isAudienceOfSts(url)) return 'is AWS STS, where a token of this audience could be exchanged for credentials';
  const isLocal = isLocalHost(url) || /(^|\.)localhost\.?$/.test(url.hostname);
  return isLocal ? 'is a loopback, link-local or metadata address, which every machine has' : undefined;
}

function checkStoredName(at: SpecPath, store: Store, name: string | undefined, report: Report): void {
  if (name === undefined) return;
  if (store === 'secretsManager' && !SECRET_NAME.test(name) && !SECRET_ARN.test(name)) {
    const fix = 'write one such as kube-bootstrap-controller/dev/prod-eu-1, or the ARN of the secret';
    report(at, `${JSON.stringify(name)} is not a valid name of a secret`, fix);
  }
  if (store === 'ssm' && !PARAMETER_NAME.test(name) && !PARAMETER_ARN.test(name)) {
    const fix = 'write one such as /kube-bootstrap-controller/dev/prod-eu-1, or the ARN of the parameter';
    report(at, `${JSON.stringify(name)} is not a valid name of a parameter`, fix);
  }
}

function checkRole(at: SpecPath, source: Store, roleArn: string | undefined, report: Report): void {
  if (roleArn === undefined) return;
  if (source === 'file') {
    report(at, 'has no meaning beside a file', 'leave it out');
  } else if (!ROLE_ARN.test(roleArn)) {
    const fix = 'write one such as arn:aws:iam::123456789012:role/read-kubeconfigs';
    report(at, `${JSON.stringify(roleArn)} is not the ARN of a role`, fix);
  }
}
