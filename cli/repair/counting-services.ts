import { lazyClusterPort } from '../../lib/dispatch/lazy-cluster-port.ts';
import type { ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import type { Environment } from '../../lib/runtime/environment.ts';

const TELL_EVERY = 100;

/** The environment, whose clusters tell how many Services were listed. A list that is started over counts anew. */
export function countingServices(environment: Environment, tell: (services: number) => void): Environment {
  return {
    ...environment,
    connect: async (spec, options) => {
      const access = await environment.connect(spec, options);
      return { ...access, kubernetes: counting(access.kubernetes, tell) };
    },
  };
}

function counting(port: ClusterPort, tell: (services: number) => void): ClusterPort {
  return {
    ...lazyClusterPort(async () => port),
    async *services() {
      let services = 0;
      for await (const service of port.services()) {
        services += 1;
        if (services % TELL_EVERY === 0) tell(services);
        yield service;
      }
    },
  };
}
