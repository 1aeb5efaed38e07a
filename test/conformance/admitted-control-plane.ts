import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { admission } from '../../lib/admission/admission.ts';
import { startDeadline } from '../../lib/runtime/deadline.ts';
import { serveAdmission, urlEvent, writeAdmissionFiles } from '../../local/serve-admission.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { aDispatchWorld } from '../support/dispatch-world.ts';
import { eventually } from '../support/eventually.ts';
import { CLUSTER, startHandlers } from '../support/handlers.ts';
import { freePort } from '../support/server-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const TOKEN = 'only-the-api-server-of-this-test-knows-it';
const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';

export type AdmittedControlPlane = Awaited<ReturnType<typeof startAdmittedControlPlane>>;

/**
 * Starts a stock API server that allocates from the table through the webhook of deploy/.
 * @param clock The clock of the passes and of the webhook. Default: the clock of this machine.
 */
export async function startAdmittedControlPlane(serviceClusterIPRange: string, clock = Date.now) {
  const port = await freePort('127.0.0.1');
  const etcd = await startEtcd();
  const authority = makeAuthority('admission of the test');
  const caller = { cluster: CLUSTER, port, token: TOKEN };
  const files = await writeAdmissionFiles(temporaryFolder(), { ...caller, ca: authority.ca });
  const extraArgs = [`--admission-control-config-file=${files.config}`];
  const apiserver = await startKubeApiserver({ etcd, serviceClusterIPRange, extraArgs });
  const handlers = await startHandlers({
    kubeconfigFile: apiserver.kubeconfigFile,
    spec: { allocator: 'table', serviceClusterIPRange, apiServers: [{ address: '10.9.8.7' }] },
    clock,
  });
  // Items can be allocated from a range only after a pass has saved it.
  for (const loop of ['cluster-ip-repair', 'node-port-repair'] as const) await handlers.run(loop);
  const world = aDispatchWorld({ nowMs: clock, startDeadline, table: () => handlers.table });
  const newProcess = () =>
    admission({
      settings: { onFailure: 'refuse', deadlineMs: 28_000, tokenStore: 'secretsManager', secretsPrefix: 'test/' },
      readTokens: async (name) => (name.endsWith(CLUSTER) ? { outcome: 'read', text: TOKEN } : { outcome: 'absent' }),
    });
  let handler = newProcess();
  /** Starts a process of the webhook that knows no token yet, and sends it more wrong tokens than it looks up at once. */
  const restartInFlood = async () => {
    handler = newProcess();
    const context = { environment: world.environment, getRemainingTimeInMillis: () => 30_000 };
    for (let sent = 0; sent < 200; sent++) {
      const headers = { authorization: `Bearer ${TOKEN}-not` };
      await handler(urlEvent({ method: 'POST', url: `/invented-${sent}`, headers }, ''), context);
    }
  };
  const certified = authority.issue(['127.0.0.1']);
  const served = { certified, port, token: TOKEN };
  const endWebhook = await serveAdmission((...call) => handler(...call), world.environment, served);
  /** Returns the number of requests to the webhook. */
  const reviewed = () => world.telemetry.invocations.length;
  /** Waits until the API server calls the webhook `times` times for each Service. */
  const untilReviewed = (times: number) =>
    eventually(async () => {
      const before = reviewed();
      const probe = { metadata: { name: 'probe' }, spec: { ports: [{ port: 80 }] } };
      const path = '/api/v1/namespaces/default/services?dryRun=All';
      const { body } = await apiserver.request<{ message?: string }>('POST', path, probe);
      const seen = reviewed() - before;
      if (seen !== times) throw new Error(`the API server asks the webhook ${seen} times: ${body.message}`);
    });
  const { status } = await apiserver.request('POST', CONFIGURATIONS, await configuration(files.webhook));
  if (status !== 201) throw new Error(`the API server answered ${status} to the webhook's configuration`);
  await untilReviewed(1);
  const close = async () => {
    await handlers.close();
    await etcd.close();
    // A test may have ended the webhook.
    await endWebhook().catch(() => undefined);
  };
  return { etcd, apiserver, handlers, world, reviewed, restartInFlood, endWebhook, untilReviewed, close };
}

async function configuration(file: string): Promise<object> {
  const configuration = parse(await readFile(file, 'utf8'));
  configuration.webhooks[0].timeoutSeconds = 30;
  return configuration;
}
