import { enableCompileCache } from 'node:module';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { loadWithStandIns } from './load-with-stand-ins.ts';
import { PLANTS, plantsIn } from './plants.ts';
import { installVirtualTime } from './virtual-time.ts';

// The compile cache halves the time of a start.
enableCompileCache();

const HELP = `npm run simulate -- [--runs N] [--seed N]   run N seeds, from this one on; with --brief without histories
npm run simulate -- --plant ID [--runs N]   the same with a defect in the code, until it is found
npm run simulate -- --plant all [--runs N] [--jobs N]  each defect, N at a time, and a table of what was found
With --plants FILE, the defects of that file instead of those of test/simulation/plants.txt.`;

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    runs: { type: 'string', default: '1' },
    plant: { type: 'string' },
    plants: { type: 'string' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    brief: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const request = { firstSeed: Number(values.seed), runs: Number(values.runs), isBrief: values.brief };
const plants = values.plants === undefined ? PLANTS : plantsIn(values.plants);
const plant = plants.find(({ id }) => id === values.plant);

if (values.help || (values.plant !== undefined && values.plant !== 'all' && plant === undefined)) {
  console.error(HELP);
  process.exitCode = 2;
} else if (values.plant === 'all') {
  const { tryPlants } = await import('./try-plants.ts');
  process.exitCode = await tryPlants(plants, values);
} else {
  // These two calls must come before any module of the project is loaded.
  installVirtualTime();
  loadWithStandIns(plant);
  const { runSeeds } = await import('./run-seeds.ts');
  process.exitCode = await runSeeds(request, plant);
}
