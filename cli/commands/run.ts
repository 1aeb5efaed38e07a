import path from 'node:path';
import { Command } from 'commander';
import { defined } from '../../lib/util/values.ts';
import { type StartOptions, shellWord } from '../../local/local-cluster.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { EXIT, usageError } from '../errors.ts';
import { type ListenAddress, parseListenAddress } from '../listen.ts';
import { parsePort } from '../options.ts';
import { completeAlways } from '../terminal.ts';

interface Options extends GlobalOptions {
  readonly filename?: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly admission?: number;
  readonly demo?: boolean;
  readonly page: boolean;
  readonly port: number;
  readonly listen?: ListenAddress;
}

const DESCRIPTION = `Run the four loops on this machine until Ctrl-C or --timeout, with a live status page

With --table NAME, run them for all registered clusters of that table, as the functions do, without a status page. Run two
or more processes: each tick runs in one of them, and if a process dies, the others run the next tick. The clusters belong to the
stack kbctl-run. Files in "kubeconfig.file" are read from this machine; no credential plugin runs.`;

export function runCommand(act: Act): Command {
  return new Command('run')
    .description(DESCRIPTION)
    .option('-f, --filename <file>', 'the spec of a cluster (see cluster.example.yml); default: an embedded cluster')
    .option('--kubeconfig <file>', 'its kubeconfig; default: that of the spec. KUBECONFIG is not read')
    .option('--context <name>', 'a context of the kubeconfig; default: its current context')
    .option(
      '--admission <port>',
      'serve the admission webhook on this port, for an API server on this machine',
      parsePort,
    )
    .option('--demo', 'show in a minute and a half, on the embedded cluster, everything that the loops do')
    .option('--port <port>', 'the port of the status page; default: a free one', parsePort, 0)
    .option('--no-page', 'serve no status page')
    .option(
      '--listen <address>',
      'with --table: serve /metrics, /healthz and /readyz at this address, such as :9464',
      parseListenAddress,
    )
    .action(act<Options>(run));
}

async function run(cli: Cli, _: readonly string[], options: Options) {
  if (options.table !== undefined) return runTable(cli, options);
  if (options.listen !== undefined) throw usageError('--listen needs --table NAME.');
  const { signal, output } = cli;
  const start = startOptions(options);
  const { run: runLoops } = await import('../../local/run.ts');
  const { servePage, statusReader } = await import('../page/serve-page.ts');
  // The table is in this process, so its clock is the clock of this process.
  const nowMs = Date.now;
  const folder = options.data === undefined ? '' : ` --data ${shellWord(options.data)}`;
  const kbctl = calledAs(process.argv[1] ?? '', process.cwd());
  await runLoops(start, signal, {
    write: (line) => output.lines([line]),
    paint: output.paint,
    hints: [`${kbctl} status${folder}`, `${kbctl} explain${folder}`],
    ...(options.page && {
      servePage: async ({ table }, cluster) => {
        const read = statusReader(table, `local ${cluster}`, nowMs);
        const page = await servePage({ port: options.port, nowMs, read });
        return { ...page, url: `${page.url}clusters/${cluster}` };
      },
    }),
  });
  return EXIT.fine;
}

async function runTable(cli: Cli, { filename, kubeconfig, context, admission, demo, port, listen }: Options) {
  if ((filename ?? kubeconfig ?? context ?? admission ?? demo) !== undefined || port !== 0) {
    throw usageError(
      'run --table serves the registered clusters: omit -f, --kubeconfig, --context, --admission, --demo and --port.',
    );
  }
  const { serveTable } = await import('../passes/serve-table.ts');
  const opened = await cli.openForWriting();
  cli.output.say(`serving the clusters of ${opened.title}`);
  const advice = await opened.adviceOnTtl();
  if (advice !== undefined) cli.output.say(advice);
  // The loops must not end if their output cannot be written, for example because the disk is full.
  await completeAlways(() => serveTable(opened, cli.options, listen, cli.signal));
  cli.output.say('ended; the endpoints are unchanged.');
  return EXIT.fine;
}

function startOptions({ filename, kubeconfig, context, admission, demo, data }: Options): StartOptions {
  if (demo && (filename ?? kubeconfig ?? context) !== undefined) {
    throw usageError('--demo uses the embedded cluster: omit --kubeconfig, -f and --context.');
  }
  if (filename === undefined && (kubeconfig ?? context ?? admission) !== undefined) {
    throw usageError(
      '--kubeconfig, --context and --admission need the spec of the cluster: add -f cluster.yml (see cluster.example.yml).',
    );
  }
  const chosen = defined({ kubeconfigFile: kubeconfig, context, admissionPort: admission });
  const real = filename === undefined ? undefined : { specFile: filename, ...chosen };
  return defined({ dataFolder: data, real, demo });
}

/**
 * Returns the command line that runs kbctl in this folder. It is never `npx kbctl`, because `npx` in another folder
 * would run the package `kbctl` of the registry.
 * @param script the path in `process.argv`: the link that was called, or the file
 */
export function calledAs(script: string, folder: string): string {
  return path.basename(script) === 'kbctl' ? 'kbctl' : `node ${shellWord(path.relative(folder, script))}`;
}
