import { isAudienceOfSts, isLocalHost } from '../../lib/util/hosts.ts';
import type { Report, SpecPath } from './spec-fault.ts';
import type { SpecDraft } from './spec-shape.ts';

const SOURCES = ['file', 'secretsManager', 'ssm', 'webIdentity'] as const;

export function checkKubeconfigField(at: SpecPath, kubeconfig: SpecDraft['kubeconfig'], report: Report): void {
  if (kubeconfig === undefined) return;
  const found = SOURCES.filter((source) => source in kubeconfig);
  const [source] = found;
  if (source === undefined) {
    const fix = 'write secretsManager: the name of a secret';
    report(at, 'has neither file, secretsManager, ssm nor webIdentity', fix);
  } else if (found.length > 1) {
    report(at, `has both ${found.join(' and ')}`, 'keep the one to read from');
  } else {
    const unused = { webIdentity: ['roleArn', 'context'], file: ['roleArn'], secretsManager: [], ssm: [] } as const;
    for (const field of unused[source].filter((each) => each in kubeconfig)) {
      report([...at, field], `has no meaning beside ${source}`, 'leave it out');
    }
    checkWebIdentity([...at, 'webIdentity'], kubeconfig, report);
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
  const url = URL.parse(server);
  if (url === null) return 'is not an https URL of an API server';
  if (isAudienceOfSts(url)) return 'is AWS STS, where a token of this audience could be exchanged for credentials';
  const isLocal = isLocalHost(url) || /(^|\.)localhost\.?$/.test(url.hostname);
  return isLocal ? 'is a loopback, link-local or metadata address, which every machine has' : undefined;
}
