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

/** Starts handlers before the tests, with the options that are made then, and closes them after the tests. */
export function runningHandlers(options: () => HandlersOptions | Promise<HandlersOptions>): Handlers {
  const handlers = {} as Handlers;
  beforeAll(async () => void Object.assign(handlers, await startHandlers(await options())));
  afterAll(() => handlers.close?.());
  return handlers;
}
