import { spawn } from 'node:child_process';
import { PLANTS } from './plants.ts';

/** Runs the simulation over each plant, in a process of its own. @returns 0 when all are found that a history can show */
export async function tryPlants(runs: number): Promise<number> {
  let missed = 0;
  for (const { id, defect, unseen } of PLANTS) {
    const startedAtMs = Date.now();
    const output = await outputOf(['--plant', id, '--brief', '--runs', String(runs)]);
    const [, seed, kind] = /Seed (\d+): (\w+):/.exec(output) ?? [];
    const seconds = Math.round((Date.now() - startedAtMs) / 1000);
    if (seed === undefined && unseen === undefined) missed++;
    const result = seed === undefined ? `not found in ${runs} runs` : `seed ${seed}, ${kind}`;
    console.log(`${id.padEnd(20)} ${result.padEnd(24)} ${String(seconds).padStart(4)} s  ${defect}`);
  }
  console.log(`${PLANTS.length} planted, ${missed} missed`);
  return missed > 0 ? 1 : 0;
}

function outputOf(args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [`${import.meta.dirname}/simulate.ts`, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  return new Promise((resolve) => {
    child.on('close', () => resolve(Buffer.concat(chunks).toString()));
  });
}
