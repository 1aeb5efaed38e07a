import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { PLANTS, type Plant } from './plants.ts';

/**
 * Runs the simulation over each plant, in a process for each.
 * @returns 0 if the simulation finds every plant
 */
export async function tryPlants(runs: number, jobs: number): Promise<number> {
  const waiting = [...PLANTS];
  let missed = 0;
  const work = async () => {
    for (let plant = waiting.shift(); plant !== undefined; plant = waiting.shift()) {
      if (!(await tryPlant(plant, runs))) missed++;
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
  console.log(`${PLANTS.length} planted, ${missed} missed`);
  return missed > 0 ? 1 : 0;
}

/** Returns whether the simulation finds the plant. @throws Error if the simulation ends without its table of results */
async function tryPlant({ id, defect }: Plant, runs: number): Promise<boolean> {
  const startedAtMs = Date.now();
  const output = await outputOf(['--plant', id, '--brief', '--runs', String(runs)]);
  if (!/^Tests: /m.test(output)) throw new Error(`the simulation of plant ${id} broke off: ${output}`);
  const [, seed, kind] = /Seed (\d+): (\w+):/.exec(output) ?? [];
  const seconds = Math.round((Date.now() - startedAtMs) / 1000);
  const result = seed === undefined ? `not found in ${runs} runs` : `seed ${seed}, ${kind}`;
  console.log(`${id.padEnd(20)} ${result.padEnd(24)} ${String(seconds).padStart(4)} s  ${defect}`);
  return seed !== undefined;
}

function outputOf(args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [...process.execArgv, `${import.meta.dirname}/simulate.ts`, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return text(child.stdout);
}
