import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { parseClusterSpec } from '../cli/spec/parse-cluster-spec.ts';
import { describeFaults } from '../cli/spec/spec-fault.ts';
import { loadKubeconfigFile } from '../lib/kubernetes/kubeconfig.ts';
import type { ClusterSpec } from '../lib/spec/cluster-spec.ts';
import { codeOf } from '../lib/util/values.ts';
import { dataFolder } from './data-folder.ts';
import { DEMO } from './demo.ts';
import { EMBEDDED, openEmbedded } from './embedded-cluster.ts';
import { type PluginTerminal, pluginRunner } from './kubeconfig-plugins.ts';
import type { LocalCluster } from './local-cluster.ts';
import { newRunKey } from './local-request.ts';
import { refuseSecond } from './running.ts';
import { type RealCluster, StartError, type StartOptions } from './start-options.ts';
import { openTableFolder } from './table-server.ts';

/** Opens a cluster. @throws StartError if another process uses its folder, or its spec, kubeconfig or table cannot be opened */
export async function openCluster(
  { real, demo = false, dataFolder: named }: StartOptions,
  terminal: PluginTerminal,
): Promise<LocalCluster> {
  if (real !== undefined) return openReal(real, named, terminal);
  const kind = demo ? DEMO : EMBEDDED;
  const folder = dataFolder(kind.name, named);
  await refuseSecond(folder);
  return openEmbedded(kind, folder);
}

async function openReal(real: RealCluster, named: string | undefined, terminal: PluginTerminal): Promise<LocalCluster> {
  const spec = await readSpec(real.specFile);
  const { file, context } = kubeconfigFor(spec, real);
  const runPlugin = pluginRunner(terminal);
  // The spec may be changed while the loops run, and may then name another file.
  const loadKubeconfig = async (current: ClusterSpec) => {
    const { file: currentFile, ...options } = kubeconfigFor(current, real);
    return loadKubeconfigFile(currentFile, { runPlugin, ...options });
  };
  const { server } = await loadKubeconfig(spec).catch((error: unknown) => {
    throw new StartError(3, error instanceof Error ? error.message : String(error), { cause: error });
  });
  const folder = dataFolder(spec.name, named);
  await refuseSecond(folder);
  const tableServer = await openTableFolder(folder, newRunKey());
  return {
    spec,
    apiServer: server,
    server: `${server} (kubeconfig ${file}${context === undefined ? '' : `, context ${context}`})`,
    folder,
    kubeconfigFile: file,
    context,
    tableServer,
    tableFolder: folder,
    notes: spec.allocator === 'table' ? [TABLE_ALLOCATES] : [],
    hints: [],
    loadKubeconfig,
    [Symbol.asyncDispose]: () => tableServer.close(),
  };
}

const TABLE_ALLOCATES =
  'allocator table: stock API servers allocate beside the table unless they call the webhook (docs/admission.md).';

/**
 * Returns the kubeconfig for this run. A kubeconfig on the command line takes precedence. This kubeconfig is not
 * written into the spec, because the spec contains the kubeconfig for the functions.
 */
function kubeconfigFor(spec: ClusterSpec, { specFile, kubeconfigFile, context }: RealCluster) {
  if (kubeconfigFile !== undefined) return { file: path.resolve(kubeconfigFile), context };
  const { kubeconfig } = spec;
  if (!('file' in kubeconfig)) {
    throw new StartError(3, `${specFile} names a kubeconfig for the functions: name a file with --kubeconfig.`);
  }
  const file = path.resolve(path.dirname(specFile), kubeconfig.file);
  return { file, context: context ?? kubeconfig.context };
}

async function readSpec(file: string): Promise<ClusterSpec> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new StartError(3, `The spec ${file} cannot be read (${codeOf(error)}): name a file that can, with -f.`);
  });
  const result = parseClusterSpec(text);
  if ('faults' in result) throw new StartError(3, describeFaults(file, result.faults));
  return result.spec;
}
