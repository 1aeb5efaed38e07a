import { randomUUID } from 'node:crypto';
import { dnsHostResolver, dnsLookup } from '../kubernetes/dns.ts';
import { startDeadline } from '../runtime/deadline.ts';
import type { Environment } from '../runtime/environment.ts';
import type { LoadKubeconfig } from '../runtime/load-kubeconfig.ts';
import { ClusterConnections } from './cluster-connections.ts';

/** The differences of a deployed function, a local run and a command: everything else is the same for all of them. */
export interface EnvironmentParts
  extends Omit<Environment, 'newPassId' | 'connect' | 'resolveHost' | 'nowMs' | 'startDeadline'>,
    Partial<Pick<Environment, 'nowMs' | 'startDeadline'>> {
  readonly loadKubeconfig: LoadKubeconfig;
}

/** Creates the environment of invocations. `close` ends every connection to API servers. */
export function createEnvironment({ loadKubeconfig, nowMs = Date.now, ...parts }: EnvironmentParts): {
  readonly environment: Environment;
  readonly close: () => Promise<void>;
} {
  const connections = new ClusterConnections({ nowMs, loadKubeconfig });
  const environment: Environment = {
    startDeadline,
    newPassId: randomUUID,
    ...parts,
    nowMs,
    connect: (spec, options) => connections.connect(spec, options),
    resolveHost: (signal) => dnsHostResolver(dnsLookup(signal)),
  };
  return { environment, close: () => connections.close() };
}
