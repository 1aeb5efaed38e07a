import type { KubeconfigSpec } from '../cluster/cluster-spec.ts';

/** A kubeconfig that is kept in AWS, by reference. */
export type StoredKubeconfig = Exclude<KubeconfigSpec, { readonly file: string }>;

/** What the messages about one say. */
export interface StoreWords {
  /** `secret kube-bootstrap-controller/dev/prod-eu-1`, `parameter /kube-bootstrap-controller/dev/prod-eu-1`. */
  readonly what: string;
  /** As IAM names what reads it. */
  readonly action: 'secretsmanager:GetSecretValue' | 'ssm:GetParameter';
  /** As in the name of its VPC endpoint. */
  readonly service: 'secretsmanager' | 'ssm';
  /** Where the cluster spec says it. */
  readonly field: 'kubeconfig.secretsManager' | 'kubeconfig.ssm';
}

export function nameOf(stored: StoredKubeconfig): string {
  return 'ssm' in stored ? stored.ssm : stored.secretsManager;
}

export function wordsOf(stored: StoredKubeconfig): StoreWords {
  if ('ssm' in stored) {
    return { what: `parameter ${stored.ssm}`, action: 'ssm:GetParameter', service: 'ssm', field: 'kubeconfig.ssm' };
  }
  return {
    what: `secret ${stored.secretsManager}`,
    action: 'secretsmanager:GetSecretValue',
    service: 'secretsmanager',
    field: 'kubeconfig.secretsManager',
  };
}

/** The region that an ARN says; a name is looked for where the function runs. */
export function regionIn(stored: StoredKubeconfig): string | undefined {
  const [scheme, , , region] = nameOf(stored).split(':');
  return scheme === 'arn' ? region : undefined;
}
