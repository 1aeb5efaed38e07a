import { parseArgs } from 'node:util';

export const HELP = `Runs the four loops on this machine until Ctrl-C.

  npm start
      on an embedded table and an embedded API server: nothing outside this process is touched

  npm start -- --kubeconfig FILE -f cluster.yml
      on the cluster that the kubeconfig names, with the table kept in a folder

Options
  -f, --file FILE        the cluster's spec (see cluster.example.yml and docs/cluster-spec.md)
      --kubeconfig FILE  the kubeconfig; it takes the place of the one that the spec names
      --context NAME     a context of it; default: its current one
      --data DIR         where the table is kept; default: .kbctl/<name of the cluster>
      --verbose          also the lines of invocations that did nothing
  -h, --help             this text

A real cluster is never taken from the environment alone: KUBECONFIG is not read.
`;

export interface RealCluster {
  readonly specFile: string;
  readonly kubeconfigFile: string;
  readonly context?: string;
  readonly dataFolder?: string;
}

/** `real` is absent for the embedded cluster. */
export type StartOptions = { readonly verbose: boolean; readonly real?: RealCluster };

export type Asked = { readonly run: StartOptions } | { readonly help: string } | { readonly usage: string };

const OPTIONS = {
  file: { type: 'string', short: 'f' },
  kubeconfig: { type: 'string' },
  context: { type: 'string' },
  data: { type: 'string' },
  verbose: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/** What the command line asks for: to run, to help, or nothing that makes sense. */
export function parseStartOptions(words: readonly string[]): Asked {
  try {
    const { values } = parseArgs({ args: [...words], options: OPTIONS });
    return values.help ? { help: HELP } : clusterAsked(values);
  } catch (error) {
    return { usage: error instanceof Error ? error.message : String(error) };
  }
}

interface Values {
  readonly file?: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly data?: string;
  readonly verbose: boolean;
}

function clusterAsked({ file, kubeconfig, context, data, verbose }: Values): Asked {
  if (file !== undefined && kubeconfig !== undefined) {
    const real = {
      specFile: file,
      kubeconfigFile: kubeconfig,
      ...(context !== undefined && { context }),
      ...(data !== undefined && { dataFolder: data }),
    };
    return { run: { verbose, real } };
  }
  if (file !== undefined) return { usage: 'A cluster is named by its kubeconfig: add --kubeconfig FILE.' };
  if (kubeconfig !== undefined)
    return { usage: 'A cluster needs its spec: add -f cluster.yml (see cluster.example.yml).' };
  if (context !== undefined) return { usage: '--context goes with --kubeconfig FILE and -f cluster.yml.' };
  if (data !== undefined) return { usage: '--data goes with --kubeconfig FILE and -f cluster.yml.' };
  return { run: { verbose } };
}
