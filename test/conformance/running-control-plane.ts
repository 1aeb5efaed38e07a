import { afterAll, beforeAll } from '@jest/globals';
import { untilBootstrapped } from '../support/bootstrapped.ts';
import {
  type Etcd,
  type KubeApiserver,
  type KubeApiserverOptions,
  startEtcd,
  startKubeApiserver,
} from '../support/control-plane.ts';

/**
 * Starts an etcd and an API server before the tests and stops both after them.
 * @returns both: they have their fields once the tests begin, when a stock API server has made what it makes by itself
 */
export function runningControlPlane(options: Omit<KubeApiserverOptions, 'etcd'> = {}): {
  etcd: Etcd;
  apiserver: KubeApiserver;
} {
  const etcd = {} as Etcd;
  const apiserver = {} as KubeApiserver;
  beforeAll(async () => {
    Object.assign(etcd, await startEtcd());
    Object.assign(apiserver, await startKubeApiserver({ ...options, etcd }));
    if (options.hooksOff !== true) await untilBootstrapped(apiserver);
  });
  afterAll(() => etcd.stop?.());
  return { etcd, apiserver };
}
