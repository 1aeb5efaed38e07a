// Compares warm ticks of kubernetes-service with their bare requests, to three API servers on loopback.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { startApiServers } from '../../local/stand-in/api-servers.ts';
import { kubeconfigOf } from '../../local/stand-in/identity.ts';
import { bundle } from '../../test/support/bundled-functions.ts';
import { IDENTITY, readyStandIn } from '../../test/support/stand-in.ts';
import { type Figure, linesOf } from './figure.ts';

const ADDRESSES = ['203.0.113.10', '203.0.113.11', '203.0.113.12'];
/** The number of first passes that do not count: they open connections, write the endpoints, and run uncompiled code. */
const COLD = 20;

export async function warmTick(folder: string, rounds: number): Promise<Figure> {
  await bundle(folder, ['tools/bench/tick-passes.ts']);
  const apiServers = await startApiServers(await readyStandIn(), IDENTITY, ADDRESSES);
  const urls = ADDRESSES.map((address) => apiServers.urlOf(address));
  const kubeconfig = path.join(folder, 'kubeconfig-of-ticks');
  writeFileSync(kubeconfig, kubeconfigOf('bench', urls[0] ?? '', IDENTITY));
  try {
    const args = [path.join(folder, 'tick-passes.mjs'), kubeconfig, String(COLD + rounds), ...urls];
    const warm = (await linesOf(process.execPath, args)).slice(COLD).map((line) => line.split(' ').map(Number));
    const column = (at: number) => warm.map((times) => times[at] ?? Number.NaN);
    const names = { what: 'a warm tick', peer: 'its requests alone', unit: 'ms of CPU' };
    return { ...names, ours: column(0), others: column(1) };
  } finally {
    await apiServers.close();
  }
}
