import { expect } from '@jest/globals';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { specIn } from '../support/a-cluster-spec.ts';
import { startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';
import { published } from '../support/kubernetes-service-objects.ts';
import { running } from '../support/running.ts';
import { freePort } from '../support/server-process.ts';
import { applyShippedRbac } from '../support/shipped-rbac.ts';
import { startWorld } from './world.ts';

export const CLUSTER = 'prod';
export const SECRET = 'kube-bootstrap-controller/dev/prod';
export const [FIRST, SECOND] = ['10.9.8.7', '10.9.8.8'] as const;

/** Starts a control plane of two API servers. */
async function startControlPlane() {
  const etcd = await startEtcd();
  try {
    const common = { etcd, port: await freePort(FIRST, SECOND) };
    const first = await startKubeApiserver({ ...common, bindAddress: FIRST, advertiseAddress: FIRST });
    const second = await startKubeApiserver({ ...common, bindAddress: SECOND, advertiseAddress: SECOND });
    const { token } = await applyShippedRbac(first, 'platform');
    const url = `https://kubernetes.default.svc:${first.port}`;
    return {
      ...{ etcd, first, second },
      /** The token of the service account in deploy/rbac.yaml. */
      token,
      /** A kubeconfig with that token and the CAs of both API servers. */
      kubeconfigYaml: kubeconfigTo(url, { ca: first.ca + second.ca, user: { token } }),
      async expectPublished(...addresses: readonly string[]) {
        expect(await published(first)).toEqual({ endpoints: addresses, slice: addresses });
      },
    };
  } catch (error) {
    await etcd.close();
    throw error;
  }
}

type DeployedCluster = ReturnType<typeof deployedCluster>;

/** Deploys the stack with these arguments and registers a cluster before the tests, and stops both after them. */
export function deployedCluster(...args: readonly string[]) {
  return running(async () => {
    const world = await startWorld();
    const controlPlane = await startControlPlane();
    const deployed = await world.deploy(...args);
    await registerWith({ world, controlPlane });
    const close = async () => {
      await world.close();
      await controlPlane.etcd.close();
    };
    return { world, controlPlane, deployed, close };
  });
}

/** Writes the kubeconfig to its secret, and registers the cluster. Adds `others` to `apiServers`. */
export async function registerWith(
  { world, controlPlane: { first, kubeconfigYaml } }: Pick<DeployedCluster, 'world' | 'controlPlane'>,
  others: readonly object[] = [],
): Promise<void> {
  await world.putSecret(SECRET, kubeconfigYaml);
  const spec = {
    name: CLUSTER,
    mode: 'enforce',
    kubeconfig: { secretsManager: SECRET },
    apiServers: [{ address: FIRST }, { address: SECOND }, ...others],
    service: { securePort: first.port },
    systemNamespaces: ['kube-system', 'kube-public', 'default', 'kube-node-lease', 'platform'],
  };
  await registerCluster(world.table(), specIn(JSON.stringify(spec)));
}
