import type { Plant } from './plants.ts';
import { type Ran, run } from './run.ts';
import { FEATURES, type LeftOut } from './settings.ts';

interface SeedsRequest {
  readonly firstSeed: number;
  readonly runs: number;
  /** Prints no histories, because shortening them takes time. */
  readonly isBrief: boolean;
}

const PROGRESS_EVERY_MS = 10_000;
/** The additional time for a shortened run, because the run can fail later when it has fewer parts. */
const LATER_MS = 10_000;
const MOST_LINES = 60;

/**
 * Runs seed after seed. Prints each seed that fails, with its shortest history and the command to replay it. With a plant, ends
 * at the first failure.
 * @returns the exit code
 */
export async function runSeeds({ firstSeed, runs, isBrief }: SeedsRequest, plant?: Plant): Promise<number> {
  let printedAtMs = Date.now();
  let [done, wrong, virtualMs] = [0, 0, 0];
  for (let seed = firstSeed; seed < firstSeed + runs && !(plant !== undefined && wrong > 0); seed++) {
    const ran = await run(seed);
    done++;
    virtualMs += ran.virtualMs;
    const [first] = ran.violations;
    if (first !== undefined) {
      wrong++;
      console.log(`\nSeed ${seed}: ${first.kind}: ${first.message}`);
      if (!isBrief) await explain(ran, first.kind, plant);
    }
    if (Date.now() - printedAtMs < PROGRESS_EVERY_MS) continue;
    printedAtMs = Date.now();
    console.log(`${done} of ${runs} runs, ${wrong} wrong`);
  }
  const cpuMs = process.cpuUsage().user / 1000;
  const minutes = (virtualMs / done / 60_000).toFixed(1);
  console.log(`${done} runs of ${minutes} min: ${wrong} wrong, ${(cpuMs / done).toFixed(0)} ms of one core each`);
  console.log(`Tests:       ${wrong > 0 ? `${wrong} failed, ` : ''}${done - wrong} passed, ${done} total`);
  return wrong > 0 ? 1 : 0;
}

async function explain(ran: Ran, kind: string, plant: Plant | undefined): Promise<void> {
  const { shortest, without } = await shortened(ran, kind);
  console.log(`Without ${[...without].join(' ')}:`);
  for (const line of shortest.history.slice(-MOST_LINES)) console.log(line.slice(0, 220));
  const planted = plant === undefined ? '' : ` --plant ${plant.id}`;
  console.log(`Replay: npm run simulate -- --seed ${ran.settings.seed}${planted}\n`);
}

/** Leaves out features, faults and incidents while the run still fails in the same way: first many at a time, then fewer. */
async function shortened({ settings, virtualMs }: Ran, kind: string): Promise<{ shortest: Ran; without: LeftOut }> {
  const { seed, incidents, faults, features } = settings;
  let [without, longestMs]: [LeftOut, number] = [new Set(), virtualMs];
  const leaveOut = async (parts: readonly string[]): Promise<void> => {
    if (parts.length === 0) return;
    const less = new Set([...without, ...parts]);
    const ran = await run(seed, { without: less, longestMs: longestMs + LATER_MS });
    if (ran.violations[0]?.kind === kind) {
      [without, longestMs] = [less, ran.virtualMs];
    } else if (parts.length > 1) {
      const half = Math.ceil(parts.length / 2);
      await leaveOut(parts.slice(0, half));
      await leaveOut(parts.slice(half));
    }
  };
  await leaveOut(incidents.map(({ number }) => `#${number}`).toReversed());
  await leaveOut([...faults.keys()]);
  await leaveOut(FEATURES.filter((feature) => features.has(feature)));
  return { shortest: await run(seed, { without, isRecorded: true }), without };
}
