import { describe, expect, test } from '@jest/globals';
import { healthOf } from '../../lib/dispatch/fleet-figures.ts';
import { LOOPS, type Loop } from '../../lib/spec/cluster-spec.ts';
import { runRecords } from '../support/run-records.ts';
import { changesOf, type Minute, statesOfAll } from './stack-alarms.ts';

describe('states of the alarms over several hours of a stack', () => {
  /** Returns the alarms that fired, with the minutes in which each began and ended. */
  function firedIn(minutes: number, at: (minute: number) => Minute): Readonly<Record<string, readonly number[]>> {
    const changes = [...statesOfAll(minutes, at)].map(([name, ofAlarm]) => [name, changesOf(ofAlarm)] as const);
    return Object.fromEntries(changes.filter(([, at]) => at.length > 0));
  }

  test('after the first deployment, only the alarms nothing-ran, figures-missing and release-failing fire, and all end', () => {
    for (const [name, ofAlarm] of statesOfAll(180, (minute) => ({ runs: minute >= 3 }))) {
      const isSilence = ['nothing-ran', 'figures-missing', 'release-failing'].includes(name);
      expect({ name, first: ofAlarm.includes('ALARM'), later: changesOf(ofAlarm) }).toEqual({
        name,
        first: isSilence,
        later: [],
      });
    }
  });

  test('an outage of an hour causes figures-missing within two minutes, then nothing-ran, and both end after the outage', () => {
    const fired = firedIn(400, (minute) => ({ runs: minute < 200 || minute >= 260 }));
    expect(Object.keys(fired).toSorted()).toEqual(['figures-missing', 'nothing-ran', 'release-failing']);
    expect(fired['figures-missing']).toEqual([202, 261]);
    const [begins = 0, ends = 0, ...others] = fired['nothing-ran'] ?? [];
    expect(others).toEqual([]);
    expect([begins - 200, ends - 260].every((late) => late >= 1 && late <= 10)).toBe(true);
  });

  const registered = { clustersRegistered: 1_000, clustersJudged: 1_000 };
  const failing = (count: number) => ({ ...registered, clustersOverdue: count, clustersFailing: count });
  const isTroubled = (minute: number) => minute >= 200 && minute < 260;
  /** Returns the minutes of a fleet of 1,000 clusters with trouble for an hour from the 200th minute on. */
  const troubled =
    (trouble: Partial<Minute>, before: Partial<Minute> = {}) =>
    (minute: number): Minute => ({
      runs: true,
      figures: registered,
      ...(minute >= 100 && before),
      ...(isTroubled(minute) && trouble),
    });

  test.each<[string, string, (minute: number) => Minute]>([
    ['all clusters failing with figures missing', 'figures-missing', troubled({ figures: 'missing' })],
    [
      'all clusters failing while the health of no cluster is counted',
      'figures-missing',
      troubled({ figures: { ...registered, clustersJudged: 0 } }),
    ],
    [
      'one of ten parts of the fleet not being counted',
      'figures-missing',
      troubled({ figures: { ...registered, clustersJudged: 850 } }),
    ],
    [
      '300 additional failing clusters',
      'clusters-overdue',
      troubled({ figures: failing(301) }, { figures: failing(1) }),
    ],
    [
      'a bad admission release',
      'admission-errors',
      troubled(
        { ofAws: { admission: { Invocations: 50, Errors: 20 } } },
        { ofAws: { admission: { Invocations: 50, Errors: 1 } } },
      ),
    ],
    [
      'a loop with a timeout in every other invocation',
      'kubernetes-service-errors',
      troubled({ ofAws: { 'kubernetes-service': { Invocations: 600, Errors: 300 } } }),
    ],
  ])(
    'because of %s, the alarm %s fires within two minutes, rolls an update back, and ends after recovery',
    (_what, alarm, at) => {
      const fired = firedIn(400, at);
      for (const name of [alarm, 'release-failing']) {
        expect({ name, at: fired[name] }).toEqual({ name, at: [202, expect.any(Number)] });
      }
      for (const [name, [begins = 0, ends = Number.NaN]] of Object.entries(fired)) {
        expect({ name, early: begins < 202, late: ends > 263 }).toEqual({ name, early: false, late: false });
      }
    },
  );

  const lateAt200 = {
    counters: { lateTicks: 1, lateProbes: 1, clockSkewed: 1 },
    ofAws: { admission: { Errors: 1, Invocations: 1, Url5xxCount: 1 } },
  };
  const judged = new Map([
    [200, 750],
    [201, 1_250],
  ]);
  test.each<[string, (minute: number) => Minute]>([
    ['one failing cluster of a thousand causes', troubled({ figures: failing(1) })],
    [
      'a single late tick and a single failed answer cause',
      (minute) => ({ runs: true, ...(minute === 200 && lateAt200) }),
    ],
    [
      'a part of the fleet that is counted one minute late causes',
      (minute) => ({ runs: true, figures: { ...registered, clustersJudged: judged.get(minute) ?? 1_000 } }),
    ],
  ])('%s no alarm, and blocks no update', (_, at) => {
    expect(firedIn(400, at)).toEqual({});
  });

  test('an outage soon after the first deployment causes an alarm', () => {
    const fired = firedIn(120, (minute) => ({ runs: minute >= 3 && minute < 45 }));
    expect(fired['nothing-ran']).toEqual([expect.any(Number)]);
  });

  const BROKEN: readonly (readonly [string, Omit<Minute, 'runs'>])[] = [
    ['clusters-overdue', { figures: { clustersOverdue: 1 } }],
    ['clusters-failing', { figures: { clustersFailing: 1 } }],
    ['no-live-lease', { figures: { clustersWithoutLiveLease: 1 } }],
    ['findings', { figures: { clustersWithFindings: 1 } }],
    ['two-owners', { figures: { clustersWithTwoOwners: 1 } }],
    ['credentials-ending', { figures: { clustersWithCredentialsEnding: 1 } }],
    ['range-filling', { figures: { fullestRangeOfFleetPercent: 81 } }],
    ['range-nearly-full', { figures: { fullestRangeOfFleetPercent: 96 } }],
    ['late-ticks', { counters: { lateTicks: 3 } }],
    ['late-probes', { counters: { lateProbes: 2 } }],
    ['unqueued-ticks', { counters: { unqueuedTicks: 5 } }],
    ['clock-skewed', { counters: { clockSkewed: 1 } }],
    ...[...LOOPS, 'deregister', 'allocate', 'admission', 'doctor'].map(
      (name) => [`${name}-errors`, { ofAws: { [name]: { Invocations: 10, Errors: 5 } } }] as const,
    ),
    ['figures-missing', { figures: { clustersRegistered: 0, clustersJudged: 0 } }],
    ['admission-throttled', { ofAws: { admission: { Throttles: 1 } } }],
    ['admission-slow', { ofAws: { admission: { Duration: 4000 } } }],
    ['admission-url-failing', { ofAws: { admission: { Url5xxCount: 1 } } }],
    ['clusters-lost', { figures: { clustersRegistered: 0 } }],
    ['release-failing', { figures: { clustersOverdue: 1 } }],
  ];

  test('the tests of this file cover every alarm that sends notifications', () => {
    const tried = [...BROKEN.map(([name]) => name), 'nothing-ran'];
    expect(tried.toSorted()).toEqual([...statesOfAll(1, () => ({ runs: false })).keys()].toSorted());
  });

  test.each(BROKEN)(
    'the alarm %s fires once, soon after its cause begins, and ends soon after its cause',
    (name, broken) => {
      const fired = firedIn(400, (minute) => ({ runs: true, ...(isTroubled(minute) && broken) }));
      const [begins = 0, ends = 0, ...others] = fired[name] ?? [];
      expect(others).toEqual([]);
      expect(begins - 200).toBeGreaterThanOrEqual(1);
      expect(begins - 200).toBeLessThanOrEqual(25);
      // A loss is visible only when the number drops. The alarm then lasts for about an hour.
      expect(Math.abs(ends - (name === 'clusters-lost' ? 270 : 260))).toBeLessThanOrEqual(25);
    },
  );

  test('a finding and a full range of a cluster with an interval of an hour cause one alarm each, and the cluster is not overdue', () => {
    const intervalSeconds = Object.fromEntries(LOOPS.map((loop) => [loop, 3600])) as Record<Loop, number>;
    const entry = {
      name: 'hourly',
      intervalSeconds,
      publishes: true,
      paused: undefined,
      owner: undefined,
      writtenAtMs: 0,
    };
    const healthAt = (minute: number) => {
      const startedAtMs = (minute - (minute % 60)) * 60_000;
      const counts = minute >= 120 && minute < 240 ? { needAttention: 1, allocated: 9, capacity: 10 } : {};
      return healthOf(entry, runRecords(startedAtMs, { counts }), { nowMs: minute * 60_000, pausedAll: undefined });
    };
    const fired = firedIn(400, (minute) => {
      const { withFindings, fullestRangePercent, overdue } = healthAt(minute);
      const figures = {
        ...{ clustersWithFindings: Number(withFindings), fullestRangeOfFleetPercent: fullestRangePercent },
        clustersOverdue: overdue.length,
      };
      return { runs: true, figures };
    });
    expect(fired).toEqual({ findings: [122, 241], 'range-filling': [122, 241] });
  });

  test('neither the deletion of clusters nor a growing fleet causes the alarm clusters-lost', () => {
    const registeredAt = (minute: number) => (minute < 100 ? 1 : minute < 200 ? 90 : 60);
    const fired = firedIn(300, (minute) => ({
      runs: true,
      figures: { clustersRegistered: registeredAt(minute), clustersJudged: registeredAt(minute) },
    }));
    expect(fired).not.toHaveProperty('clusters-lost');
  });
});
