import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import type { Plant } from './plants.ts';

interface Trial {
  readonly runs: string;
  readonly seed: string;
  readonly jobs: string;
  /** The file of the plants. Default: that of the simulation. */
  readonly plants?: string | undefined;
}

/**
 * Runs the simulation over each plant, in a process for each.
 * @returns 0 if the simulation finds every plant
 */
export async function tryPlants(plants: readonly Plant[], trial: Trial): Promise<number> {
  const waiting = [...plants];
  let missed = 0;
  const work = async () => {
    for (let plant = waiting.shift(); plant !== undefined; plant = waiting.shift()) {
      if (!(await tryPlant(plant, trial))) missed++;
    }
  };
  await Promise.all(Array.from({ length: Number(trial.jobs) }, work));
  console.log(`${plants.length} planted, ${missed} missed`);
  return missed > 0 ? 1 : 0;
}

/** Returns whether the simulation finds the plant. @throws Error if the simulation ends without its table of results */
async function tryPlant({ id, defect }: Plant, { runs, seed: first, plants }: Trial): Promise<boolean> {
  const startedAtMs = Date.now();
  const file = plants === undefined ? [] : ['--plants', plants];
  const output = await outputOf([...file, '--plant', id, '--brief', '--seed', first, '--runs', runs]);
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
