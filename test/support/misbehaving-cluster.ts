import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import type { StandInApiServer } from '../../local/stand-in/stand-in-api-server.ts';
import { type Reaction, type SeenRequest, startFaultServer } from './api-fault-server.ts';
import { kubeconfigTo } from './kubeconfig-to.ts';
import { objectsIn, readyStandIn } from './stand-in.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** The credential of the kubeconfig. It must never be seen anywhere else. */
export const TOKEN = 'fhqwhgads-not-to-be-shown';

/** A stand-in API server behind TLS that a test makes misbehave, and the kubeconfig that leads to it. */
export interface MisbehavingCluster {
  readonly standIn: StandInApiServer;
  readonly url: string;
  readonly kubeconfigFile: string;
  /** What it does instead of answering; `undefined` from `react` lets it answer. Probes are always answered. */
  misbehave(react: (request: SeenRequest) => Reaction | undefined): void;
  /** Another kubeconfig; `undefined` removes the file. */
  writeKubeconfig(text: string | undefined): Promise<void>;
  /** The right one, with these fields changed. */
  kubeconfig(change?: { readonly cluster?: object; readonly user?: object }): string;
  /** Everything is as it should be again. */
  recover(): Promise<void>;
  /** Every object, as it is. */
  objects(): Promise<unknown>;
  stop(): Promise<void>;
}

export async function startMisbehavingCluster(): Promise<MisbehavingCluster> {
  const authority = makeAuthority('the cluster');
  const standIn = await readyStandIn();
  let fault: (request: SeenRequest) => Reaction | undefined = () => undefined;

  const answer = async (request: SeenRequest): Promise<Reaction> => {
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    return standIn.handle({ ...request, headers });
  };
  const react = (request: SeenRequest): Reaction | Promise<Reaction> => {
    if (request.path.startsWith('/readyz')) return answer(request);
    return refusal(request) ?? fault(request) ?? answer(request);
  };

  const kubeconfigFile = join(temporaryFolder(), 'kubeconfig.json');
  const server = await startFaultServer(react, authority.issue(['127.0.0.1']));
  const cluster: MisbehavingCluster = {
    standIn,
    url: server.url,
    kubeconfigFile,
    misbehave: (reaction) => {
      fault = reaction;
    },
    writeKubeconfig: (text) => (text === undefined ? rm(kubeconfigFile) : writeFile(kubeconfigFile, text)),
    kubeconfig: ({ cluster: changed, user } = {}) =>
      kubeconfigTo(server.url, {
        ca: authority.ca,
        ...(changed && { cluster: changed }),
        user: { token: TOKEN, ...user },
      }),
    recover: async () => {
      fault = () => undefined;
      await writeFile(kubeconfigFile, cluster.kubeconfig());
    },
    objects: () => objectsIn(standIn),
    stop: server.stop,
  };
  await cluster.recover();
  return cluster;
}

/** As an API server whose only user has the token. */
function refusal({ headers }: SeenRequest): Reaction | undefined {
  if (headers['authorization'] === `Bearer ${TOKEN}`) return undefined;
  return { status: 401, body: { kind: 'Status', apiVersion: 'v1', code: 401, reason: 'Unauthorized' } };
}
