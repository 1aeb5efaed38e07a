import { afterAll, beforeAll } from '@jest/globals';
import { untilBootstrapped } from '../support/bootstrapped.ts';
import {
  type Etcd,
  type KubeApiserver,
  type KubeApiserverOptions,
  startEtcd,
  startKubeApiserver,
} from '../support/control-plane.ts';
import { type Handlers, type HandlersOptions, startHandlers } from '../support/handlers.ts';

/**
 * Starts an etcd and an API server before the tests and stops both after them.
 * @returns two objects that get their fields before the tests. A stock API server has then created its own objects.
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

/** Calls `options` and starts handlers with the result before the tests, and closes the handlers after the tests. */
export function runningHandlers(options: () => HandlersOptions | Promise<HandlersOptions>): Handlers {
  const handlers = {} as Handlers;
  beforeAll(async () => void Object.assign(handlers, await startHandlers(await options())));
  afterAll(() => handlers.close?.());
  return handlers;
}
