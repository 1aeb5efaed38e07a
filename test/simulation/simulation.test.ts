import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import { edited } from './load-with-stand-ins.ts';
import { PLANTS, SCALES } from './plants.ts';

const ROOT = `${import.meta.dirname}/../..`;
const FILE = `${import.meta.dirname}/simulate.ts`;

/** Runs the simulation in its own process, because it replaces timers, the HTTP client and, with a plant, code. */
async function simulate(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--disable-warning=ExperimentalWarning',
    FILE,
    ...args,
  ]).catch((failure: { readonly stdout: string; readonly stderr: string }) => ({
    stdout: failure.stdout + failure.stderr,
  }));
  return stdout;
}

/** Returns the part of the output that a replay must repeat. */
function historyIn(output: string): string | undefined {
  return /Seed \d+:[\s\S]*Replay:/.exec(output)?.[0];
}

test('the simulation finds no violation in the first seeds', async () => {
  expect(await simulate('--runs', '8')).toContain('8 passed, 8 total');
});

test('the simulation finds a planted defect and replays its history exactly', async () => {
  const found = historyIn(await simulate('--plant', '25', '--runs', '40'));
  const [, seed = ''] = /Seed (\d+)/.exec(found ?? '') ?? [];
  expect(found).toContain('WRONG');
  expect(historyIn(await simulate('--plant', '25', '--seed', seed))).toBe(found);
});

/** Prints the lag that a timer of the simulation measures in three calm seconds, and in one with a stall of 1.5 s. */
const LAGS = `
const { installVirtualTime, useTime } = await import('${import.meta.dirname}/virtual-time.ts');
installVirtualTime();
const { Chance, Clock } = await import('${import.meta.dirname}/clock.ts');
const { measureLag } = await import('${ROOT}/lib/kubernetes/https-prober.ts');
const clock = new Clock();
useTime(clock, new Chance(1));
const calm = measureLag();
clock.nowMs += 3_000;
const lags = [calm()];
const busy = measureLag();
clock.nowMs += 1_000;
clock.stall(1_500);
console.log([...lags, busy()].join(' '));
`;

test('a timer of the simulation measures a lag only if the simulated process is blocked', async () => {
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', LAGS];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(stdout).toBe('0 1400\n');
});

describe('planted defects', () => {
  const edits = [{ id: 'the scale', edits: SCALES }, ...PLANTS].flatMap((plant) =>
    plant.edits.map((edit) => ({ id: plant.id, edit })),
  );

  test.each(edits)('planted defect $id replaces a text that occurs exactly once in the code', async ({ edit }) => {
    const source = await readFile(`${ROOT}/${edit.file}`, 'utf8');
    expect(edited(source, edit)).not.toBe(source);
  });

  test('each planted defect has its own id', () => {
    const ids = PLANTS.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });
});
