// Measures the project beside its peers, in turn in one run:
//
//   npm run bench                all figures; needs Go for upstream's repair
//   npm run bench -- --quick     the ratios that CI guards: fails if one is above its limit
//   npm run bench -- --json      prints JSON
//
// docs/performance.md has the figures and how to read them.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { ofCallers } from './bench/allocate.ts';
import { type Figure, median, ratioOf } from './bench/figure.ts';
import { fleetRow } from './bench/fleet.ts';
import { type RepairOptions, repairPasses, upstreamPasses } from './bench/repair.ts';
import { start } from './bench/start.ts';

interface Guarded {
  readonly figure: Figure;
  /** The ratio above which `--quick` fails: some times the usual one, never a time. */
  readonly limit: number;
}

const { values } = parseArgs({ options: { quick: { type: 'boolean' }, json: { type: 'boolean' } } });
const isQuick = values.quick === true;
const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-'));
mkdirSync(path.join(import.meta.dirname, '../.cache'), { recursive: true });
try {
  const guarded = await guardedFigures(isQuick ? 5 : 21);
  const others = isQuick ? [] : await upstreamFigures();
  const fleets: Awaited<ReturnType<typeof fleetRow>>[] = [];
  for (const size of isQuick ? [] : [100, 1_000, 10_000]) fleets.push(await fleetRow(size));
  const rows = [...guarded, ...others.map((figure) => ({ figure, limit: Number.NaN }))].map(rowOf);
  if (values.json) console.log(JSON.stringify({ machine: machine(), rows, fleets }, undefined, 2));
  else console.log([machine(), table(rows), ...(fleets.length > 0 ? [table(fleets)] : [])].join('\n\n'));
  for (const { figure, limit } of guarded.filter((each) => !(ratioOf(each.figure) <= each.limit))) {
    console.error(`${figure.what}: ${ratioOf(figure).toFixed(2)} times ${figure.peer}, and ${limit} is the limit`);
    process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true });
}
process.exit();

async function guardedFigures(rounds: number): Promise<Guarded[]> {
  const [small, large] = [await ourRepair(1_000, rounds), await ourRepair(50_000, rounds)];
  const reads = { peer: 'a read of the list', unit: 'ms of CPU' };
  const peaks = { what: 'peak memory, 50,000 Services', peer: '1,000 Services', unit: 'MB' };
  const repair = { what: 'repair, 50,000 Services', ...reads, ours: large.cpuMs, others: large.readCpuMs };
  return [
    ...(await ofCallers(1, 1)).slice(0, 1).map((figure) => ({ figure, limit: 2.6 })),
    ...(await ofCallers(50, 5)).map((figure) => ({ figure, limit: 1.5 })),
    { figure: repair, limit: 12 },
    { figure: { ...peaks, ours: large.peakMb.slice(-1), others: small.peakMb.slice(-1) }, limit: 1.8 },
    { figure: await start(folder, 'allocate', 21), limit: 1.8 },
    { figure: await start(folder, 'kubernetes-service', 21), limit: 2.2 },
  ];
}

function ourRepair(services: number, passes: number) {
  return repairPasses(folder, { services, passes });
}

async function upstreamFigures(): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const services of [1_000, 10_000, 50_000, 100_000]) {
    const options: RepairOptions = { services, passes: 7 };
    const [ours, others] = [await repairPasses(folder, options), await upstreamPasses(folder, options)];
    const names = { peer: 'upstream in Go', unit: 'ms' };
    const what = `repair, ${services} Services`;
    figures.push(
      { ...names, what: `${what}: first pass`, ours: ours.passMs.slice(0, 1), others: others.passMs.slice(0, 1) },
      { ...names, what: `${what}: others`, ours: ours.passMs.slice(1), others: others.passMs.slice(1) },
      { ...names, what: `${what}: peak memory`, unit: 'MB', ours: ours.peakMb.slice(-1), others: others.peakMb },
    );
  }
  return figures;
}

function rowOf({ figure, limit }: Guarded): Record<string, string | number> {
  const { what, peer, unit, ours, others } = figure;
  const ratios = ours.map((each, round) => each / (others[round] ?? Number.NaN));
  const digits = (value: number) => Number(value.toPrecision(3));
  return {
    what,
    peer,
    ours: `${digits(median(ours))} ${unit}`,
    'the peer': `${digits(median(others))} ${unit}`,
    ratio: digits(ratioOf(figure)),
    'least and most': `${digits(Math.min(...ratios))}, ${digits(Math.max(...ratios))}`,
    limit: Number.isNaN(limit) ? '' : digits(limit),
  };
}

function table(rows: readonly Record<string, string | number>[]): string {
  const names = Object.keys(rows[0] ?? {});
  const lines = [names, names.map(() => '---'), ...rows.map((row) => Object.values(row))];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function machine(): string {
  return `${os.cpus()[0]?.model}, ${os.cpus().length} cores, Node ${process.version}, load ${os.loadavg()[0]?.toFixed(1)}`;
}
