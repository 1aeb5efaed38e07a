import type { KubeconfigSpec } from './cluster-spec.ts';
import { fault, type SpecFault } from './spec-fault.ts';
import type { ShapedSpec, SpecDraft } from './spec-shape.ts';

const AT = 'kubeconfig';
const STORES = ['file', 'secretsManager', 'ssm'] as const;
type Store = (typeof STORES)[number];

/** As `CreateSecret` and `PutParameter` take names, and ARNs of either. */
const SECRET_NAME = /^[\w/+=.@-]{1,512}$/;
const PARAMETER_NAME = /^[\w./-]{1,1011}$/;
const SECRET_ARN = /^arn:aws[\w-]*:secretsmanager:[\w-]+:\d{12}:secret:[\w/+=.@-]+$/;
const PARAMETER_ARN = /^arn:aws[\w-]*:ssm:[\w-]+:\d{12}:parameter\/[\w./-]+$/;
const ROLE_ARN = /^arn:aws[\w-]*:iam::\d{12}:role\/[\w+=,.@/-]+$/;

/** One place to read from, and a role only where there is something to be allowed to. */
export function kubeconfigFaults({ kubeconfig }: SpecDraft): SpecFault[] {
  if (kubeconfig === undefined) return [];
  const said = STORES.filter((store) => store in kubeconfig);
  if (said.length === 0) {
    return [fault([AT], 'says neither file, secretsManager nor ssm', 'write secretsManager: the name of a secret')];
  }
  if (said.length > 1) return [fault([AT], `has both ${said.join(' and ')}`, 'keep the one to read from')];
  return [...said.flatMap((store) => nameFaults(store, kubeconfig[store])), ...roleFaults(said, kubeconfig.roleArn)];
}

function nameFaults(store: Store, name: string | undefined): SpecFault[] {
  if (name === undefined) return [];
  if (store === 'secretsManager' && !SECRET_NAME.test(name) && !SECRET_ARN.test(name)) {
    const fix = 'write one such as kube-bootstrap-controller/dev/prod-eu-1, or the ARN of the secret';
    return [fault([AT, store], `${JSON.stringify(name)} is no name of a secret`, fix)];
  }
  if (store === 'ssm' && !PARAMETER_NAME.test(name) && !PARAMETER_ARN.test(name)) {
    const fix = 'write one such as /kube-bootstrap-controller/dev/prod-eu-1, or the ARN of the parameter';
    return [fault([AT, store], `${JSON.stringify(name)} is no name of a parameter`, fix)];
  }
  return [];
}

function roleFaults(said: readonly Store[], roleArn: string | undefined): SpecFault[] {
  if (roleArn === undefined) return [];
  const at = [AT, 'roleArn'];
  if (said.includes('file')) return [fault(at, 'has no meaning beside a file', 'leave it out')];
  if (ROLE_ARN.test(roleArn)) return [];
  const fix = 'write one such as arn:aws:iam::123456789012:role/read-kubeconfigs';
  return [fault(at, `${JSON.stringify(roleArn)} is no ARN of a role`, fix)];
}

/** What the rules let pass, as one of its kinds. */
export function completedKubeconfig(shaped: ShapedSpec['kubeconfig']): KubeconfigSpec {
  const { file, secretsManager, ssm, roleArn, context } = shaped;
  const chosen = context === undefined ? {} : { context };
  if (file !== undefined) return { file, ...chosen };
  const role = roleArn === undefined ? {} : { roleArn };
  return secretsManager === undefined ? { ssm: ssm ?? '', ...role, ...chosen } : { secretsManager, ...role, ...chosen };
}
