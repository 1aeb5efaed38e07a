import { randomInt } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { clusterPort } from '../../lib/kubernetes/api-server-cluster.ts';
import type { Prober } from '../../lib/kubernetes/cluster-port.ts';
import type { Loop } from '../../lib/spec/cluster-spec.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { runOnSchedules, scheduledLoops } from '../../local/clock-driven-runner.ts';
import { DEMO, playStory, STORY, type StoryEvent } from '../../local/demo.ts';
import { embeddedSpec } from '../../local/embedded-cluster.ts';
import { sentenceTelemetry } from '../../local/human-telemetry.ts';
import type { EmbeddedWorld } from '../../local/local-cluster.ts';
import { StandInApiServer } from '../../local/stand-in/stand-in-api-server.ts';
import { tableAllocation } from '../../local/stand-in/table-allocation.ts';
import { aDispatchWorld } from '../support/dispatch-world.ts';
import { memoryTable } from '../support/memory-table.ts';
import { CONTROL_PLANE } from '../support/pass-context.ts';
import { transportTo } from '../support/stand-in.ts';
import { jumpingClock } from './jumping-clock.ts';

const BEGAN_MS = Date.parse('2026-01-01T12:00:00Z');

const [IPS, PORTS, SERVICE] = ['cluster-ip-repair', 'node-port-repair', 'kubernetes-service'] as const;
const PUBLISHED = 'endpoints default/kubernetes: 192.0.2.1 192.0.2.2';

/** For each event: the loop that must react, a pattern of what the loop prints, and the time limit of the reaction in seconds. */
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
];

interface Line {
  readonly atMs: number;
  /** The printed text. For an event of the demo, it is only the sentence. */
  readonly text: string;
  readonly isEvent: boolean;
}

/** Runs the demo for some seconds of a virtual clock, which begins `offsetMs` after `BEGAN_MS`. */
async function show(offsetMs: number, seconds: number): Promise<readonly Line[]> {
  const startMs = BEGAN_MS + offsetMs;
  const { clock, signal } = jumpingClock(startMs + seconds * 1000, 5, startMs);
  const { nowMs } = clock;
  const lines: Line[] = [];
  const table = memoryTable({ nowMs });
  const allocation = tableAllocation({ table, cluster: DEMO.name, pick: randomInt, nowMs });
  const standIn = new StandInApiServer({ allocation, nowMs });
  const dead = new Set<string>();
  const spec = embeddedSpec(DEMO, '/nowhere', (address) => `http://${address}`);
  const world: EmbeddedWorld = {
    standIn,
    allocation,
    apiServers: {
      stop: async (address) => void dead.add(address),
      start: async (address) => void dead.delete(address),
    },
  };
  const probe: Prober = async ({ url }) =>
    dead.has(new URL(url).hostname)
      ? { kind: 'silence', message: 'connection refused (ECONNREFUSED)' }
      : { kind: 'status', status: 200, body: 'ok' };
  const { environment } = aDispatchWorld({
    nowMs,
    telemetry: sentenceTelemetry({
      nowMs,
      own: DEMO.name,
      write: (text) => void lines.push({ atMs: nowMs(), text, isEvent: false }),
      paint: (_, text) => text,
    }),
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
  });
  const print = (text: string, kind: 'event' | 'outlook') => {
    if (kind === 'event') lines.push({ atMs: nowMs(), text, isEvent: true });
  };

  await registerCluster(table, spec);
  await runOnSchedules(scheduledLoops(environment, spec), clock, signal, async () => {
    await playStory(STORY, { world, clock, print }, signal);
    await clock.sleepUntil(startMs + seconds * 1000, signal);
  });
  return lines;
}

describe('the demo', () => {
  /**
   * Start times of the demo, relative to a tick of all loops. Loops have ticks every 10 or 15 seconds, and the demo must get its
   * reactions at every start time between two ticks.
   */
  const offsets = [0, 1_700, 5_000, 9_900, 13_300, 14_999, 21_000, 29_500];

  test.each(offsets)(
    'the demo that begins %d ms after a tick of all loops gets every reaction in time',
    async (offset) => {
      const lines = await show(offset, 95);
      expect(lines.filter(({ text }) => /not done|failed: /.test(text))).toEqual([]);
      const events = lines.filter(({ isEvent }) => isEvent);
      expect(events.map(({ text }, at) => text.startsWith(STORY[at]?.what ?? '-'))).toEqual(STORY.map(() => true));
      for (const [what, loop, prints, withinSeconds] of REACTIONS) {
        const atMs = events.find(({ text }) => text.startsWith(what))?.atMs ?? Number.NaN;
        const inTime = lines
          .filter((line) => !line.isEvent && line.atMs >= atMs && line.atMs <= atMs + withinSeconds * 1000)
          .map(({ text }) => text.slice('12:00:00  '.length));
        expect(inTime.filter((line) => line.startsWith(loop))).toContainEqual(expect.stringMatching(prints));
      }
    },
  );
});

test('the demo prints each event with its result and what to watch for, reports an event that fails, and stops after the last event', async () => {
  const { clock, signal } = jumpingClock(9_000, 1);
  const lines: string[] = [];
  const print = (sentence: string) => void lines.push(`${clock.nowMs() / 1000} ${sentence}`);
  const event = (atSeconds: number, act: StoryEvent['act']) => ({
    atSeconds,
    what: `event ${atSeconds}`,
    act,
    outlook: 'look',
  });
  const fails = () => Promise.reject(new Error('it is gone'));
  // `playStory` only passes the world to events, and these events do not use it.
  const stage = { world: {} as EmbeddedWorld, clock, print };
  await playStory([event(1, async () => '10.0.0.7'), event(5, fails), event(9, fails)], stage, signal);
  expect(lines).toEqual(['1 event 1: 10.0.0.7', '1 look', '5 event 5: not done, it is gone', '5 look']);
});
