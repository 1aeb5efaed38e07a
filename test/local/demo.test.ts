import { randomInt, randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import type { Loop } from '../../lib/cluster/cluster-spec.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { clusterPort } from '../../lib/kubernetes/api-server-cluster.ts';
import type { Prober } from '../../lib/kubernetes/cluster-port.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { readRange } from '../../lib/table/ranges.ts';
import { runOnSchedules, scheduledLoops } from '../../local/clock-driven-runner.ts';
import { playStory, STORY, type StoryEvent } from '../../local/demo-story.ts';
import { DEMO, type DemoWorld } from '../../local/demo-world.ts';
import { embeddedSpec } from '../../local/embedded-cluster.ts';
import { sentenceTelemetry } from '../../local/human-telemetry.ts';
import { StandInApiServer } from '../../local/stand-in/stand-in-api-server.ts';
import { tableAllocation } from '../../local/stand-in/table-allocation.ts';
import { memoryTable } from '../support/memory-table.ts';
import { CONTROL_PLANE } from '../support/pass-context.ts';
import { objectsIn, transportTo } from '../support/stand-in.ts';
import { jumpingClock } from './jumping-clock.ts';

const BEGAN_MS = Date.parse('2026-01-01T12:00:00Z');

const [IPS, PORTS, SERVICE] = ['cluster-ip-repair', 'node-port-repair', 'kubernetes-service'] as const;
const PUBLISHED = 'endpoints default/kubernetes: 192.0.2.1 192.0.2.2';

/** What the loops must print after an event, as the text of a pattern, and within how many seconds. */
const REACTIONS: readonly [event: string, loop: Loop, prints: string, withinSeconds: number][] = [
  ['an API server takes', IPS, 'found mayHaveLeaked: the cluster IP', 15],
  ['an API server takes', PORTS, 'found mayHaveLeaked: the node port', 15],
  ['an API server takes', IPS, '1 freed as leaked', 45],
  ['an API server takes', PORTS, '1 freed as leaked', 45],
  ['the API server 192.0.2.3 stops', SERVICE, `updated ${PUBLISHED}$`, 20],
  ['the namespace', 'system-namespaces', 'created namespace kube-node-lease', 15],
  ['the API server 192.0.2.3 returns', SERVICE, 'took lease 192.0.2.3 again: answered 200', 10],
  ['the API server 192.0.2.3 returns', SERVICE, `updated ${PUBLISHED} 192.0.2.3`, 10],
  ['shop/web-9 is restored', IPS, 'found duplicate: .* for service shop/web-9 was assigned to multiple services', 15],
  ['shop/web-9 is deleted', IPS, 'found repair: .* for service shop/web-1 is not allocated; repairing', 15],
  ['a market opens', IPS, 'found nothingFree: nothing is free in the service CIDR 10.0.0.0/26', 15],
  ['the market closes', IPS, 'resolved', 15],
];

interface Line {
  readonly atMs: number;
  /** What is on the screen; of an event of the story the sentence alone. */
  readonly text: string;
  readonly isEvent: boolean;
}

interface Shown {
  readonly lines: readonly Line[];
  readonly standIn: StandInApiServer;
  /** Of the primary range, at the end. */
  readonly takenBits: number;
}

/** Runs the demo from `offsetMs` into the minute on, for so long. Without waiting. */
async function show(offsetMs: number, seconds: number): Promise<Shown> {
  const startMs = BEGAN_MS + offsetMs;
  const { clock, signal } = jumpingClock(startMs + seconds * 1000, 5, startMs);
  const { nowMs } = clock;
  const lines: Line[] = [];
  const table = memoryTable({ nowMs, newWriteId: randomUUID });
  const allocation = tableAllocation({ table, cluster: DEMO.name, pick: randomInt, nowMs });
  const standIn = new StandInApiServer({ allocation, nowMs, newUid: randomUUID });
  const dead = new Set<string>();
  const spec = embeddedSpec(DEMO, '/nowhere', (address) => `http://${address}`);
  const world: DemoWorld = {
    standIn,
    allocation,
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
    telemetry: sentenceTelemetry({
      nowMs,
      write: (text) => void lines.push({ atMs: nowMs(), text, isEvent: false }),
      paint: (_, text) => text,
    }),
    reportingInstance: 'local',
    table: () => table,
    connect: async (_, { signal: deadline }) => ({
      controlPlane: CONTROL_PLANE,
      kubernetes: clusterPort({
        transport: transportTo(standIn),
        server: 'http://stand-in',
        deadline,
        userAgent: 'kube-bootstrap-controller/test',
      }),
      probe,
    }),
    resolveHost: () => async () => undefined,
  };
  const print = (text: string, kind: 'event' | 'outlook') => {
    if (kind === 'event') lines.push({ atMs: nowMs(), text, isEvent: true });
  };

  await registerCluster(table, spec);
  await runOnSchedules(scheduledLoops(environment, spec), clock, signal, () =>
    playStory(STORY, { world, clock, print }, signal),
  );
  const range = await readRange(table, DEMO.name, RANGE_KEYS.primary);
  const takenBits = [...(range?.stored.data ?? [])].reduce(
    (sum, byte) => sum + byte.toString(2).replaceAll('0', '').length,
    0,
  );
  return { lines, standIn, takenBits };
}

const eventsOf = ({ what }: StoryEvent, { lines }: Shown) =>
  lines.filter(({ isEvent, text }) => isEvent && text.startsWith(what));

describe('the demo', () => {
  /** Passes are due at whole multiples of 10 and 15 seconds: its reactions come wherever in between it begins. */
  const offsets = [0, 1_700, 5_000, 9_900, 13_300, 14_999, 21_000, 29_500];

  test.each(offsets)(
    'the demo that begins %d ms after a tick of all loops gets every reaction in time, each time',
    async (offset) => {
      const shown = await show(offset, 388);
      expect(shown.lines.filter(({ text }) => text.includes('not done'))).toEqual([]);
      for (const event of STORY) expect([event.what, eventsOf(event, shown).length]).toEqual([event.what, 2]);
      for (const [what, loop, prints, withinSeconds] of REACTIONS) {
        for (const { atMs } of shown.lines.filter(({ isEvent, text }) => isEvent && text.startsWith(what))) {
          const inTime = shown.lines
            .filter((line) => !line.isEvent && line.atMs >= atMs && line.atMs <= atMs + withinSeconds * 1000)
            .map(({ text }) => text.slice('12:00:00  '.length));
          expect(inTime.filter((line) => line.startsWith(loop))).toContainEqual(expect.stringMatching(prints));
        }
      }
    },
  );

  test('the demo ends its first round in about two minutes, without a failure of a loop', async () => {
    const shown = await show(3_000, 135);
    expect(STORY.map((event) => eventsOf(event, shown).length)).toEqual(STORY.map(() => 1));
    expect(shown.lines.filter(({ text }) => text.includes('failed: '))).toEqual([]);
  });

  test('the demo leaves no Service and no address behind at its end', async () => {
    const shown = await show(3_000, 131);
    expect(shown.takenBits).toBe(1);
    const [, services] = (await objectsIn(shown.standIn)) as { metadata: { name: string } }[][];
    expect(services?.map(({ metadata }) => metadata.name)).toEqual(['kubernetes']);
  });
});

describe('playing a story', () => {
  const played = async (story: readonly StoryEvent[], endMs: number): Promise<string[]> => {
    const { clock, signal } = jumpingClock(endMs, 1);
    const lines: string[] = [];
    const print = (sentence: string) => void lines.push(`${clock.nowMs() / 1000} ${sentence}`);
    // The player itself touches nothing of the world.
    await playStory(story, { world: {} as DemoWorld, clock, print }, signal);
    return lines;
  };
  const first: StoryEvent = { atSeconds: 1, what: 'first', act: async () => undefined };
  const second: StoryEvent = { ...first, atSeconds: 5, what: 'second' };

  test.each<[string, StoryEvent[], number, string[]]>([
    [
      'prints each event, with its result and what to watch for',
      [{ ...first, act: async () => '10.0.0.7', outlook: 'look' }, second],
      6_000,
      ['1 first: 10.0.0.7', '1 look', '5 second'],
    ],
    [
      'begins again after a pause, half as fast',
      [first, second],
      24_000,
      ['1 first', '5 second', '15 first', '23 second'],
    ],
    [
      'reports an event that fails, and continues',
      [{ ...first, act: () => Promise.reject(new Error('it is gone')) }, second],
      6_000,
      ['1 first: not done, it is gone', '5 second'],
    ],
    ['stops at its end', [first, second], 5_000, ['1 first']],
  ])('%s', async (_, story, endMs, lines) => {
    expect(await played(story, endMs)).toEqual(lines);
  });
});

test('the story of the demo has its events in order', () => {
  const times = STORY.map(({ atSeconds }) => atSeconds);
  expect(times).toEqual(times.toSorted((one, other) => one - other));
});

test('the story of the demo has a reaction of every loop, each to one of its events', () => {
  expect(new Set(REACTIONS.map(([, loop]) => loop)).size).toBe(4);
  const events = REACTIONS.map(([what]) => STORY.filter((event) => event.what.startsWith(what)).length);
  expect(events).toEqual(REACTIONS.map(() => 1));
});
