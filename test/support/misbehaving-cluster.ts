import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { type Reaction, type SeenRequest, startFaultServer } from './api-fault-server.ts';
import { kubeconfigTo } from './kubeconfig-to.ts';
import { objectsIn, readyStandIn } from './stand-in.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** The credential of the kubeconfig, which must not appear in any output. */
export const TOKEN = 'fhqwhgads-not-to-be-shown';

export type MisbehavingCluster = Awaited<ReturnType<typeof startMisbehavingCluster>>;

/** Starts a stand-in API server over TLS whose faults a test sets, and writes a kubeconfig for it. */
export async function startMisbehavingCluster(host = '127.0.0.1') {
  const authority = makeAuthority('the cluster');
  const standIn = await readyStandIn();
  let fault: (request: SeenRequest) => Reaction | undefined = () => undefined;

  const answer = async (request: SeenRequest): Promise<Reaction> => {
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    return standIn.handle({ ...request, headers });
  };
  const react = (request: SeenRequest): Reaction | Promise<Reaction> => {
    const isProbe = request.path.startsWith('/readyz');
    return (isProbe ? undefined : refusal(request)) ?? fault(request) ?? answer(request);
  };

  const kubeconfigFile = join(temporaryFolder(), 'kubeconfig.json');
  const server = await startFaultServer(react, authority.issue([host]), host);
  const kubeconfig = ({ cluster = {}, user }: { readonly cluster?: object; readonly user?: object } = {}) =>
    kubeconfigTo(server.url, { ca: authority.ca, cluster, user: { token: TOKEN, ...user } });
  await writeFile(kubeconfigFile, kubeconfig());
  return {
    standIn,
    url: server.url,
    certificateAuthorityData: Buffer.from(authority.ca).toString('base64'),
    kubeconfigFile,
    /**
     * Sets the faults of all replies except those to probes.
     * @param reaction returns what the API server does instead of answering, or `undefined` if it answers
     */
    misbehave: (reaction: typeof fault) => {
      fault = (request) => (request.path.startsWith('/readyz') ? undefined : reaction(request));
    },
    /** Sets the faults of all replies, also to probes. */
    misbehaveAlways: (reaction: typeof fault) => {
      fault = reaction;
    },
    kubeconfig,
    objects: () => objectsIn(standIn),
    stop: server.stop,
  };
}

/** Refuses requests without the token, as an API server with a single user does. */
function refusal({ headers }: SeenRequest): Reaction | undefined {
  if (headers['authorization'] === `Bearer ${TOKEN}`) return undefined;
  return { status: 401, body: { kind: 'Status', apiVersion: 'v1', code: 401, reason: 'Unauthorized' } };
}
