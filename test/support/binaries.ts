import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';

/** The version that `npm run test:conformance` builds. */
export const KUBERNETES_VERSION = process.env['KUBERNETES_VERSION'] ?? 'v1.36.3';

const buildScript = join(import.meta.dirname, '../conformance/build-control-plane.sh');

/**
 * Returns the paths of the programs of a control plane: from `KUBEBUILDER_ASSETS` if it is set, otherwise those that
 * `test/conformance/build-control-plane.sh` built.
 * @throws Error if they do not exist.
 */
export function findBinaries() {
  const built = execFileSync('bash', [buildScript, '--folder'], { encoding: 'utf8' }).trim();
  const stock = process.env['KUBEBUILDER_ASSETS'] || built;
  const etcd = join(stock, 'etcd');
  const kubeApiserver = join(stock, 'kube-apiserver');
  const missing = [etcd, kubeApiserver].filter((file) => !isExecutable(file));
  if (missing.length > 0) {
    throw new Error(
      `${missing.join(' and ')} cannot be run: use "npm run test:conformance", which builds both once with Go 1.26, ` +
        'or set KUBEBUILDER_ASSETS to a folder that holds an etcd and a kube-apiserver',
    );
  }
  const kubeApiserverHooksOff = join(built, 'kube-apiserver-hooks-off');
  const kubectl = join(built, 'kubectl');
  return {
    etcd,
    kubeApiserver,
    // KUBEBUILDER_ASSETS does not contain this variant.
    ...(isExecutable(kubeApiserverHooksOff) && { kubeApiserverHooksOff }),
    ...(isExecutable(kubectl) && { kubectl }),
  };
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
