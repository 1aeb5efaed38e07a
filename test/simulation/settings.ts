import { Chance } from './clock.ts';
import type { IncidentName } from './incidents.ts';
import { everything, THEMES } from './themes.ts';

/** Features of which each seed has only some, so that each is tested often. */
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
  'fewNames',
  'ownReconcilers',
  'skewedMachines',
  'halts',
  'secondFamily',
  'prune',
  'longLeases',
  'brokenLists',
  'otherStack',
  'olderVersion',
  'storeFails',
  'repairAddresses',
  'skewedApiServers',
  'slowAdmission',
  'oddServices',
  'outOfRange',
  'refusedRecords',
  'ownRepair',
  'laggingCaches',
] as const;
/**
 * The parts of a run: the endpoints loop; the two repairs together with the Services, where the table allocates; the repair of
 * IPAddresses, where API servers allocate. The last two do not occur together.
 */
export type Part = 'endpoints' | 'ranges' | 'addresses';
/** The features that a seed has only by its theme. */
type OfThemes = 'crashLoop' | 'busy' | 'contestedLast' | 'balancer' | 'attacker';
export type Feature = Part | OfThemes | (typeof FEATURES)[number];

/** The faults of a call between two machines. */
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
  /** The frequency of each fault: one call in this many has it. */
  readonly faults: ReadonlyMap<Fault, number>;
  readonly incidents: readonly PlannedIncident[];
  readonly troubleMs: number;
}

export interface PlannedIncident {
  readonly name: IncidentName;
  readonly number: number;
  readonly afterMs: number;
}

/** The parts that a run leaves out, to find which parts cause a failure, such as `agents`, `lostReply` or `#3`. */
export type LeftOut = ReadonlySet<string>;

/** The interval of the repairs. After the faults, everything must converge in four of them. */
export const INTERVAL_MS = 30_000;

/** Returns the features, faults and incidents of a seed. */
export function settingsOf(seed: number, without: LeftOut = new Set()): Settings {
  const chance = new Chance(seed).of('settings');
  const theme = chance.once(16) ? everything(chance) : chance.oneOf(THEMES);
  const features = theme.perhaps.filter(() => chance.once(2));
  const rates = chance.oneOf(theme.rates);
  const faults = FAULTS.map((fault) => [fault, rates[chance.pick(rates.length)] ?? 0] as const);
  const troubleMs = theme.longestMs / 3 + chance.pick((theme.longestMs * 2) / 3);
  const pauseMs = theme.pausesMs[chance.pick(theme.pausesMs.length)] ?? 0;
  const planned: PlannedIncident[] = [];
  for (let afterMs = chance.pick(pauseMs); afterMs < troubleMs; afterMs += 1 + chance.pick(2 * pauseMs)) {
    const name = theme.incidents[chance.pick(theme.incidents.length)];
    if (name !== undefined) planned.push({ name, number: planned.length + 1, afterMs });
  }
  return {
    seed,
    features: new Set([...theme.parts, ...theme.always, ...features].filter((feature) => !without.has(feature))),
    faults: new Map(faults.filter(([fault, rate]) => rate > 0 && !without.has(fault))),
    incidents: planned.filter(({ number }) => !without.has(`#${number}`)),
    troubleMs,
  };
}
