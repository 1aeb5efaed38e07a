import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { clusterPort } from '../../lib/kubernetes/api-server-cluster.ts';
import type { Prober } from '../../lib/kubernetes/cluster-port.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { readRange } from '../../lib/table/ranges.ts';
import { loopJobs, runOnSchedules } from '../../local/clock-driven-runner.ts';
import { playStory, STORY, type Step } from '../../local/demo-story.ts';
import { DEMO, type DemoWorld } from '../../local/demo-world.ts';
import { embeddedAllocation, embeddedSpec } from '../../local/embedded-cluster.ts';
import { sentenceTelemetry } from '../../local/human-telemetry.ts';
import { StandInApiServer } from '../../local/stand-in/stand-in-api-server.ts';
import { memoryTable } from '../support/memory-table.ts';
import { transportTo } from '../support/stand-in.ts';
import { objectsIn } from '../support/stand-in-objects.ts';
import { jumpingClock } from './jumping-clock.ts';

const BEGAN_MS = Date.parse('2026-01-01T12:00:00Z');

interface Said {
  readonly atMs: number;
  /** What is on the screen; of the demo itself the sentence alone. */
  readonly text: string;
  readonly isDeed: boolean;
}

interface Shown {
  readonly said: readonly Said[];
  readonly standIn: StandInApiServer;
  /** Of the primary range, at the end. */
  readonly takenBits: number;
}

/** Runs the demo from `offsetMs` into the minute on, for so long. Nobody waits. */
async function show(offsetMs: number, seconds: number, story: readonly Step[] = STORY): Promise<Shown> {
  const startMs = BEGAN_MS + offsetMs;
  const { clock, signal } = jumpingClock(startMs + seconds * 1000, 5, startMs);
  const { nowMs } = clock;
  const said: Said[] = [];
  const table = memoryTable({ nowMs, newWriteId: randomUUID });
  const { allocation, addresses } = embeddedAllocation(DEMO, table, nowMs);
  const standIn = new StandInApiServer({ allocation, nowMs, newUid: randomUUID });
  const dead = new Set<string>();
  const spec = embeddedSpec(DEMO, '/nowhere', (address) => `http://${address}`);
  const world: DemoWorld = {
    standIn,
    allocation,
    addresses,
    apiServers: {
      stop: async (address) => void dead.add(address),
      start: async (address) => void dead.delete(address),
    },
    newUid: randomUUID,
    nowMs,
  };
  const probe: Prober = async ({ url }) =>
    dead.has(new URL(url).hostname)
      ? { kind: 'silence', message: 'connection refused (ECONNREFUSED)' }
      : { kind: 'status', status: 200, body: 'ok' };
  const environment: Environment = {
    nowMs,
    newPassId: randomUUID,
    startDeadline: () => ({ signal: new AbortController().signal, cancel: () => undefined }),
    telemetry: sentenceTelemetry({ nowMs, write: (text) => void said.push({ atMs: nowMs(), text, isDeed: false }) }),
    reportingInstance: 'local',
    table: () => table,
    connect: async (_, { signal: deadline, warn }) => ({
      kubernetes: clusterPort({
        transport: transportTo(standIn),
        server: 'http://stand-in',
        deadline,
        userAgent: 'kube-bootstrap-controller/test',
        warn,
      }),
      probe,
    }),
    resolveHost: () => async () => undefined,
  };
  const tell = (text: string, kind: 'deed' | 'outlook') => {
    if (kind === 'deed') said.push({ atMs: nowMs(), text, isDeed: true });
  };

  await registerCluster(table, spec);
  await runOnSchedules(loopJobs(environment, spec), clock, signal, () =>
    playStory(story, { world, clock, tell }, signal),
  );
  const range = await readRange(table, DEMO.name, RANGE_KEYS.primary);
  const takenBits = [...(range?.stored.data ?? [])].reduce(
    (sum, byte) => sum + byte.toString(2).replaceAll('0', '').length,
    0,
  );
  return { said, standIn, takenBits };
}

const deedOf = ({ what }: Step, { said }: Shown) => said.filter(({ isDeed, text }) => isDeed && text.startsWith(what));

describe('the demo', () => {
  /** Passes fall on whole multiples of 10 and 15 seconds: wherever in between it begins, its promises hold. */
  const offsets = [0, 1_700, 5_000, 9_900, 13_300, 14_999, 21_000, 29_500];

  test.each(offsets)(
    'begun %d ms after a tick of all loops, gets every reaction that it promises, each time',
    async (offset) => {
      const shown = await show(offset, 388);
      for (const step of STORY) {
        const deeds = deedOf(step, shown);
        expect([step.what, deeds.length]).toEqual([step.what, 2]);
        for (const { atMs, text } of deeds) {
          expect(text).not.toContain('not done');
          for (const { loop, says, withinSeconds } of step.reactions ?? []) {
            const inTime = shown.said.filter(
              (line) => !line.isDeed && line.atMs >= atMs && line.atMs <= atMs + withinSeconds * 1000,
            );
            const lines = inTime
              .map((line) => line.text.slice('12:00:00  '.length))
              .filter((line) => line.startsWith(loop));
            expect(lines).toContainEqual(expect.stringMatching(says));
          }
        }
      }
    },
  );

  test('is over once in about two minutes, and its loops fail at nothing', async () => {
    const shown = await show(3_000, 135);
    expect(STORY.map((step) => deedOf(step, shown).length)).toEqual(STORY.map(() => 1));
    expect(shown.said.filter(({ text }) => text.includes('failed: '))).toEqual([]);
  });

  test('leaves no Service and no address behind at its end', async () => {
    const shown = await show(3_000, 131);
    expect(shown.takenBits).toBe(1);
    const [, services] = (await objectsIn(shown.standIn)) as { metadata: { name: string } }[][];
    expect(services?.map(({ metadata }) => metadata.name)).toEqual(['kubernetes']);
  });

  test('goes on where somebody else has changed the cluster, and says what could not be done', async () => {
    const meddled = STORY.map((step) =>
      step.what.includes('restored')
        ? { ...step, do: async () => Promise.reject(new Error('services "web-1" not found')) }
        : step,
    );
    const { said } = await show(3_000, 135, meddled);
    const notDone = said.filter(({ text }) => text.includes('not done')).map(({ text }) => text);
    expect(notDone).toEqual([
      'shop/web-9 is restored from a backup, with the address of shop/web-1: not done, services "web-1" not found',
      'shop/web-9 is deleted, as it said: not done, services "web-9" not found',
    ]);
  });
});

describe('the story of the demo', () => {
  test('is in the order of its times', () => {
    const times = STORY.map(({ atSeconds }) => atSeconds);
    expect(times).toEqual(times.toSorted((one, other) => one - other));
  });

  test('has something from every loop', () => {
    const loops = new Set(STORY.flatMap(({ reactions = [] }) => reactions.map(({ loop }) => loop)));
    expect([...loops].toSorted()).toEqual([
      'cluster-ip-repair',
      'kubernetes-service',
      'node-port-repair',
      'system-namespaces',
    ]);
  });
});
