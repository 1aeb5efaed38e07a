// Measures this project and comparable programs in turn, in one run:
//   npm run bench                all figures; needs Go for upstream's packages
//   npm run bench -- --write     also writes the figures to docs/performance.md, which explains them
//   npm run bench -- --quick     only the ratios that CI checks: fails if a ratio is above its limit
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { defined } from '../lib/util/values.ts';
import { ofCallers } from './bench/allocate.ts';
import { digits, type Figure, median, ratioOf } from './bench/figure.ts';
import { fleetRow } from './bench/fleet.ts';
import { start, warmTick } from './bench/functions.ts';
import { repairFigures, repairPasses } from './bench/repair.ts';

type Row = Readonly<Record<string, string | number>>;

const options = { quick: { type: 'boolean' }, write: { type: 'boolean' } } as const;
const { values } = parseArgs({ options });
const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-'));
mkdirSync(path.join(import.meta.dirname, '../.cache'), { recursive: true });
try {
  const guarded = await guardedFigures(values.quick ? 5 : 21);
  const sections: Record<string, readonly Row[]> = {
    'Guarded ratios': guarded.map(rowOf),
    ...(values.quick ? {} : await others()),
  };
  console.log(textOf(sections));
  if (values.write) writeFigures(textOf(sections));
  for (const figure of guarded) {
    const { what, peer, limit = Number.POSITIVE_INFINITY } = figure;
    if (ratioOf(figure) <= limit) continue;
    console.error(`${what}: ${ratioOf(figure).toFixed(2)} times ${peer}, and ${limit} is the limit`);
    process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true });
}
process.exit();

async function guardedFigures(rounds: number): Promise<Figure[]> {
  const small = await repairPasses(folder, { services: 1_000, passes: rounds });
  const large = await repairPasses(folder, { services: 50_000, passes: rounds });
  const reads = { peer: 'a read of the list', unit: 'ms of CPU' };
  const peaks = { what: 'peak memory, 50,000 Services', peer: '1,000 Services', unit: 'MB' };
  const repair = { what: 'repair, 50,000 Services', ...reads, ours: large.cpuMs, others: large.readCpuMs };
  return [
    ...(await ofCallers(1, 1)).slice(0, 1).map((figure) => ({ ...figure, limit: 2.1 })),
    ...(await ofCallers(10, 5)),
    ...(await ofCallers(50, 5)).map((figure) => ({ ...figure, limit: 1.5 })),
    { ...repair, limit: 4 },
    { ...peaks, ours: large.peakMb.slice(-1), others: small.peakMb.slice(-1), limit: 1.8 },
    { ...(await start(folder, 'allocate', 21)), limit: 1.5 },
    { ...(await start(folder, 'kubernetes-service', 21)), limit: 1.7 },
    { ...(await warmTick(folder, 41)), limit: 4 },
  ];
}

async function others(): Promise<Record<string, readonly Row[]>> {
  const repairs = await repairFigures(folder);
  const fleets: Row[] = [];
  for (const size of [100, 1_000, 10_000]) fleets.push(await fleetRow(size));
  return {
    'Repair passes, beside upstream in Go': repairs.map(rowOf).map(({ peer, ...row }) => row),
    'Fleets, one cluster of ten dead': fleets,
  };
}

function rowOf(figure: Figure): Row {
  const { what, peer, unit, ours, others, limit } = figure;
  const ratios = ours.map((each, round) => each / (others[round] ?? Number.NaN));
  return {
    what,
    peer,
    ours: `${digits(median(ours))} ${unit}`,
    'the peer': `${digits(median(others))} ${unit}`,
    ratio: digits(ratioOf(figure)),
    'least and most': `${digits(Math.min(...ratios))}, ${digits(Math.max(...ratios))}`,
    ...defined({ limit }),
  };
}

function textOf(sections: Readonly<Record<string, readonly Row[]>>): string {
  const machine = `${os.cpus()[0]?.model}, ${os.cpus().length} cores, Node ${process.version}`;
  const tables = Object.entries(sections).map(([title, rows]) => `### ${title}\n\n${table(rows)}`);
  return [`On ${machine}, load ${os.loadavg()[0]?.toFixed(1)}.`, ...tables].join('\n\n');
}

function table(rows: readonly Row[]): string {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const lines = [names, names.map(() => '---'), ...rows.map((row) => names.map((name) => row[name] ?? ''))];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function writeFigures(text: string): void {
  const page = path.join(import.meta.dirname, '../docs/performance.md');
  const [begin, end] = ['<!-- written by npm run bench -->', '<!-- end -->'];
  const [before, rest = ''] = readFileSync(page, 'utf8').split(begin);
  writeFileSync(page, `${before}${begin}\n\n${text}\n\n${end}${rest.split(end)[1]}`);
}
