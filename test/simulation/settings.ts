import { Chance } from './clock.ts';

/** Each seed has some of these, so that each gets its time. */
export const FEATURES = [
  'agents',
  'rollouts',
  'twoServers',
  'dns',
  'webhook',
  'requests',
  'nodePorts',
  'dualStack',
  'tightRange',
  'wideRange',
  'contention',
  'slowReads',
  'skewedFunctions',
  'slowNetwork',
  'lateProcesses',
  'oneServerKubeconfig',
  'lossyPath',
  'silentSpares',
  'serverDiesLast',
  'lossyWrites',
  'ownReconcilers',
  'skewedMachines',
] as const;
/** What comes together, in one seed of six: a bad configuration on the hosts of the API servers. */
const BAD_HOSTS: readonly Feature[] = ['endpoints', 'agents', 'crashLoop', 'lossyWrites', 'ownReconcilers'];
/** The endpoints loop, and the two repairs with the Services. A third of the seeds has only the first, a third only the second. */
export const PARTS = ['endpoints', 'ranges'] as const;
export type Part = (typeof PARTS)[number];
export type Feature = Part | (typeof FEATURES)[number] | 'crashLoop';

/** What happens to a call between two machines. */
export const FAULTS = [
  'lostRequest',
  'lateRequest',
  'lostReply',
  'repeated',
  'slow',
  'throttled',
  'serverError',
  'crashBefore',
  'crashAfter',
] as const;
export type Fault = (typeof FAULTS)[number];

export interface Settings {
  readonly seed: number;
  readonly features: ReadonlySet<Feature>;
  /** One call in so many has the fault. */
  readonly faults: ReadonlyMap<Fault, number>;
  readonly incidents: readonly PlannedIncident[];
  readonly troubleMs: number;
}

export interface PlannedIncident {
  readonly name: string;
  readonly number: number;
  readonly afterMs: number;
}

/** Parts that are left out of the run of a seed, to find the ones that matter: `agents`, `lostReply`, `#3`. */
export type LeftOut = ReadonlySet<string>;

/** Which parts of the world each incident is for. */
export type IncidentParts = Readonly<Record<string, readonly Part[]>>;

/** Of the four intervals of the repairs in which everything converges, and of the time with faults. */
export const INTERVAL_MS = 30_000;
const LONGEST_TROUBLE_MS = 7 * INTERVAL_MS;

/** Returns what the run of a seed is made of. */
export function settingsOf(seed: number, incidents: IncidentParts, without: LeftOut = new Set()): Settings {
  const chance = new Chance(seed).of('settings');
  const parts = chance.oneOf<readonly Part[]>([['endpoints'], ['ranges'], PARTS]);
  const features = FEATURES.filter(() => chance.once(2));
  const together = chance.once(6) ? BAD_HOSTS : [];
  // Runs of few faults go far, those of many come to rare places, and those of none show what concurrency alone does.
  const rates = chance.oneOf([[0], [0, 400], [60, 400], [15, 60, 400], [15, 60]]);
  const faults = FAULTS.map((fault) => [fault, rates[chance.pick(rates.length)] ?? 0] as const);
  const troubleMs = 2 * INTERVAL_MS + chance.pick(LONGEST_TROUBLE_MS - 2 * INTERVAL_MS);
  const pauseMs = chance.oneOf([6_000, 15_000, 40_000]);
  // Few kinds of incidents, each often: the second of a kind finds what the first one left.
  const kinds = Object.keys(incidents).filter(
    (name) => chance.once(2) && incidents[name]?.some((part) => parts.includes(part)),
  );
  const planned: PlannedIncident[] = [];
  for (let afterMs = chance.pick(pauseMs); afterMs < troubleMs; afterMs += 1 + chance.pick(2 * pauseMs)) {
    const name = kinds[chance.pick(kinds.length)];
    if (name !== undefined) planned.push({ name, number: planned.length + 1, afterMs });
  }
  return {
    seed,
    features: new Set([...parts, ...features, ...together].filter((feature) => !without.has(feature))),
    faults: new Map(faults.filter(([fault, rate]) => rate > 0 && !without.has(fault))),
    incidents: planned.filter(({ number }) => !without.has(`#${number}`)),
    troubleMs,
  };
}
