import {
  type Etcd,
  type KubeApiserver,
  type KubeApiserverOptions,
  startEtcd,
  startKubeApiserver,
} from '../support/control-plane.ts';
import { type Handlers, type HandlersOptions, startHandlers } from '../support/handlers.ts';
import { running } from '../support/running.ts';

/** Starts an etcd and an API server before the tests and stops both after them. */
export function runningControlPlane(options: Omit<KubeApiserverOptions, 'etcd'> = {}): {
  etcd: Etcd;
  apiserver: KubeApiserver;
} {
  const etcd = running(startEtcd);
  return { etcd, apiserver: running(() => startKubeApiserver({ ...options, etcd })) };
}

/** Calls `options` and starts handlers with the result before the tests, and closes the handlers after the tests. */
export function runningHandlers(options: () => HandlersOptions | Promise<HandlersOptions>): Handlers {
  return running(async () => startHandlers(await options()));
}
