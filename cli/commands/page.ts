import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { Command } from 'commander';
import { codeOf } from '../../lib/util/values.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { configurationError, EXIT, usageError } from '../errors.ts';
import { parsePort } from '../options.ts';
import { renderClusterPage, renderFleetPage } from '../page/render-pages.ts';
import { servePage, statusReader } from '../page/serve-page.ts';
import { fleetStatus, registeredCluster } from '../registered.ts';

interface Options extends GlobalOptions {
  readonly serve?: boolean;
  readonly port?: number;
  readonly filename?: string;
}

const DEFAULT_FILE = 'status.html';

export function pageCommand(act: Act): Command {
  return new Command('page')
    .description('Write the status page to a file, or serve it live on this machine')
    .argument('[cluster]', 'the cluster to show, with maps of its ranges; default: a line for each')
    .option('-f, --filename <file>', `the file, or - for stdout; default: ${DEFAULT_FILE}`)
    .option('--serve', 'serve it on a loopback address until Ctrl-C')
    .option('--port <port>', 'the port for --serve; default: a free one', parsePort)
    .action(
      act<Options>((cli, [name], options) => (options.serve ? serve(cli, name, options) : write(cli, name, options))),
    );
}

async function write(cli: Cli, name: string | undefined, { filename: file = DEFAULT_FILE, port }: Options) {
  if (port !== undefined) throw usageError('--port needs --serve.');
  const fleet = await fleetStatus(cli, name === undefined ? 'brief' : 'full', name);
  const [only] = fleet.clusters;
  const page = name === undefined || only === undefined ? renderFleetPage(fleet) : renderClusterPage(only, fleet);
  if (file === '-') {
    cli.output.data(`${page}\n`);
    return EXIT.fine;
  }
  await writeFile(file, page).catch((cause: unknown) => {
    throw configurationError(`Cannot write ${file} (${codeOf(cause)}): use a file in a writable folder.`, { cause });
  });
  cli.output.say(`Wrote ${file}, ${Math.ceil(Buffer.byteLength(page) / 1024)} KB: current status.`);
  return EXIT.fine;
}

async function serve(cli: Cli, name: string | undefined, { filename: file, port = 0 }: Options) {
  if (file !== undefined) throw usageError('Use either --filename or --serve.');
  const { tableName, tableUntil, table, title, clock } = await cli.openTable();
  if (name !== undefined) await registeredCluster(table, name);
  const page = await servePage({
    port,
    nowMs: clock.nowMs,
    key: keyOf(process.env['KBCTL_PAGE_KEY']),
    read: statusReader(tableUntil, tableName, clock.nowMs),
  });
  cli.output.lines([name === undefined ? page.url : `${page.url}clusters/${name}`]);
  cli.output.say(`Serving ${title} on this machine until Ctrl-C.`);
  if (!cli.signal.aborted) await once(cli.signal, 'abort');
  await page.close();
  return EXIT.fine;
}

/** Returns the key for scrapers of `/metrics` from KBCTL_PAGE_KEY. Without this variable, the page gets a random key. */
function keyOf(variable: string | undefined): string | undefined {
  if (variable === undefined || variable === '') return undefined;
  if (/^[\w-]{16,}$/.test(variable)) return variable;
  throw usageError('KBCTL_PAGE_KEY must have at least 16 letters, digits, - or _.');
}
