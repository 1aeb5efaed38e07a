import { Command } from 'commander';
import { readClusterStatus } from '../../lib/status/read-status.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { EXIT, usageError } from '../errors.ts';
import { writeWhole } from '../files.ts';
import { parsePort, withExamples } from '../options.ts';
import { readForLivePage } from '../page/read-for-page.ts';
import { renderClusterPage } from '../page/render-cluster-page.ts';
import { renderFleetPage } from '../page/render-fleet-page.ts';
import { servePage } from '../page/serve-page.ts';
import { registeredCluster, statusOf, statusOfAll } from '../registered.ts';

interface Options extends GlobalOptions {
  readonly serve?: boolean;
  readonly port?: number;
  readonly filename?: string;
}

const DEFAULT_FILE = 'status.html';

/** `kbctl page [CLUSTER] [--serve]`. */
export function pageCommand(act: Act): Command {
  const command = new Command('page')
    .description('Write the status page to a file, or serve it live to this machine')
    .argument('[cluster]', 'of one cluster alone; default: all')
    .option('-f, --filename <file>', `where to; - is stdout; default: ${DEFAULT_FILE}`)
    .option('--serve', 'serve it at a loopback address until Ctrl-C')
    .option('--port <port>', 'with --serve; default: a free one', parsePort)
    .action(
      act<Options>((cli, [name], options) => (options.serve ? serve(cli, name, options) : write(cli, name, options))),
    );
  return withExamples(command, [
    'kbctl page --table kube-bootstrap-controller-prod -f status.html',
    'kbctl page prod-eu-1 -f prod-eu-1.html',
    'kbctl page --serve',
  ]);
}

async function write(cli: Cli, name: string | undefined, { filename: file = DEFAULT_FILE, port }: Options) {
  if (port !== undefined) throw usageError('--port goes with --serve.');
  const atMs = await cli.nowMs();
  const page =
    name === undefined
      ? renderFleetPage(await statusOfAll(cli, atMs))
      : renderClusterPage(await statusOf(cli, name, atMs), { atMs });
  if (file === '-') {
    cli.output.data(`${page}\n`);
  } else {
    await writeWhole(file, page);
    cli.output.say(
      `Wrote ${file}, ${Math.ceil(Buffer.byteLength(page) / 1024)} KB: it shows what the table said just now.`,
    );
  }
  return EXIT.fine;
}

async function serve(cli: Cli, name: string | undefined, { filename: file, port = 0 }: Options) {
  if (file !== undefined) throw usageError('A page is written to a file or served: give --filename or --serve.');
  const { tableName, tableUntil, table, title, clock } = await cli.openTable();
  if (name !== undefined) await registeredCluster(table, name);
  const page = await servePage({
    port,
    nowMs: clock.nowMs,
    readFleet: (signal) => readForLivePage(tableUntil(signal), tableName, clock.nowMs()),
    readCluster: (cluster, signal) => readClusterStatus(tableUntil(signal), cluster, clock.nowMs()),
  });
  const url = name === undefined ? page.url : new URL(`clusters/${name}`, page.url).href;
  cli.output.lines([url]);
  cli.output.say(`Serving ${title} to this machine until Ctrl-C.`);
  if (!cli.signal.aborted) {
    await new Promise((resolve) => {
      cli.signal.addEventListener('abort', resolve, { once: true });
    });
  }
  await page.close();
  return EXIT.fine;
}
