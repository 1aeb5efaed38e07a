import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { LOOPS } from '../../lib/cluster/cluster-spec.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { kubeconfig } from '../support/control-plane.ts';
import { CLUSTER, type Handlers, runAllLoops, startHandlers } from '../support/handlers.ts';
import { versionsOfEverything } from '../support/kubernetes-service-objects.ts';
import { runningControlPlane } from '../support/running-control-plane.ts';
import { type ServiceAccount, serviceAccount } from '../support/service-account.ts';

const folder = mkdtempSync(join(tmpdir(), 'kube-bootstrap-controller-bad-input-'));
const { apiserver } = runningControlPlane();

afterAll(() => rmSync(folder, { recursive: true }));

const change = (given: { ca?: string; token?: string }) => {
  const { url, ca, token } = apiserver;
  return kubeconfig({ url, ca, token, ...given });
};

/** One that is wrong, what is told of it, and what makes it right: by default the right one in its place. */
interface Row {
  readonly title: string;
  readonly bad: () => Promise<string>;
  readonly error: RegExp;
  readonly correct?: () => Promise<void>;
}

let powerless: ServiceAccount;

describe.each<Row>([
  {
    title: 'has the CA of another cluster',
    bad: async () => change({ ca: makeAuthority('another').ca }),
    error:
      /^TlsFailure: .* was not accepted .*Put the CA of this cluster in the kubeconfig \(certificate-authority-data\)/,
  },
  {
    title: 'has a token that the server does not know',
    bad: async () => change({ token: 'of-another-cluster' }),
    error: /^Unauthorized: .* answered 401 .*The credential in the kubeconfig has expired .*: replace it/,
  },
  {
    title: 'is that of an account without rights',
    bad: async () => {
      powerless = await serviceAccount(apiserver, 'powerless');
      return powerless.kubeconfigYaml;
    },
    correct: () => powerless.grant([{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }]),
    error:
      /^Forbidden: .* answered 403 .*"system:serviceaccount:accounts:powerless" cannot .*Grant this to the user or service account/,
  },
])('a kubeconfig that $title', ({ title, bad, error, correct }) => {
  let kubeconfigFile: string;
  let handlers: Handlers;

  beforeAll(async () => {
    kubeconfigFile = join(folder, `${title.replaceAll(' ', '-')}.yml`);
    writeFileSync(kubeconfigFile, await bad());
    handlers = await startHandlers({
      kubeconfigFile,
      spec: {
        apiServers: [{ address: '10.9.8.7', probe: { url: `${apiserver.url}/readyz` } }],
        service: { securePort: apiserver.port },
      },
    });
  });
  afterAll(() => handlers?.close());

  test('fails every pass with a resolution, and changes nothing', async () => {
    const before = await versionsOfEverything(apiserver);

    const passes = await Promise.all(LOOPS.map((loop) => handlers.run(loop)));

    for (const { summary, errors } of passes) {
      expect(summary).toEqual({ passes: 1, failed: 1, skipped: 0 });
      expect(errors[0]).toMatch(error);
    }
    expect(passes.flatMap(({ changes }) => changes).filter((told) => !told.startsWith('took lease'))).toEqual([]);
    expect(await versionsOfEverything(apiserver)).toEqual(before);
    expect(await handlers.table.list(CLUSTER, 'ranges/')).toEqual([]);
  });

  test('holds up no pass once it is corrected', async () => {
    if (correct) await correct();
    else writeFileSync(kubeconfigFile, apiserver.kubeconfigYaml);

    const passes = await runAllLoops(handlers);

    expect(passes.map(({ summary, errors }) => ({ ...summary, errors }))).toEqual(
      LOOPS.map(() => ({ passes: 1, failed: 0, skipped: 0, errors: [] })),
    );
  });
});
