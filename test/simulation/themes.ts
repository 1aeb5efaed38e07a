import type { Chance } from './clock.ts';
import type { IncidentName } from './incidents.ts';
import { FEATURES, type Feature, type Part } from './settings.ts';

/** The subject of a seed: few kinds of events, which happen often in a short time. */
export interface Theme extends Trouble {
  readonly parts: readonly Part[];
  /** The features of all seeds of the theme. */
  readonly always: readonly Feature[];
  /** The features that some seeds of the theme have. */
  readonly perhaps: readonly Feature[];
  readonly incidents: readonly IncidentName[];
}

/** How often something fails, and for how long. */
interface Trouble {
  /** Lists of fault rates. A seed uses one list, and each fault gets one rate from that list. */
  readonly rates: readonly [readonly number[], ...(readonly number[])[]];
  readonly longestMs: number;
  /** The average times between two incidents, of which a seed uses one. */
  readonly pausesMs: readonly number[];
}

const troubleOf =
  (...rates: Trouble['rates']) =>
  (longestSeconds: number, ...pausesSeconds: readonly number[]): Trouble => ({
    rates,
    longestMs: 1000 * longestSeconds,
    pausesMs: pausesSeconds.map((seconds) => 1000 * seconds),
  });

// Runs with few faults get far, runs with many reach rare states, and runs without faults show the effects of concurrency alone.
const all = troubleOf([0], [0, 400], [60, 400], [15, 60, 400], [15, 60]);
const few = troubleOf([0], [0, 400], [60, 400]);
const some = troubleOf([0, 0, 60], [0, 60, 400]);
const many = troubleOf([15, 60], [15, 60, 400], [60]);

type Features = readonly Feature[];

const themeOf =
  (...parts: readonly Part[]) =>
  (always: Features, perhaps: Features, incidents: readonly IncidentName[], trouble: Trouble): Theme => ({
    parts,
    always,
    perhaps,
    incidents,
    ...trouble,
  });

const endpoints = themeOf('endpoints');
const ranges = themeOf('ranges');
const both = themeOf('endpoints', 'ranges');
const addresses = themeOf('addresses');

export const THEMES: readonly [Theme, ...Theme[]] = [
  endpoints(
    ['agents', 'crashLoop', 'lossyWrites', 'ownReconcilers'],
    ['twoServers', 'rollouts', 'skewedMachines', 'slowNetwork'],
    ['blip', 'drain', 'drainAll', 'agentDies'],
    few(27, 3, 5, 10),
  ),
  endpoints(['agents', 'crashLoop', 'busy'], ['twoServers', 'skewedFunctions'], ['drainAll'], some(40, 8)),
  endpoints([], ['agents'], ['undoIsLost'], few(30, 8)),
  endpoints(
    ['agents'],
    ['rollouts', 'twoServers', 'lossyWrites', 'skewedFunctions', 'slowNetwork'],
    ['drainAll', 'drain', 'lossyNetwork', 'deployment'],
    many(40, 3, 6, 12),
  ),
  endpoints(
    ['rollouts'],
    ['agents', 'twoServers', 'slowNetwork', 'slowReads', 'ownReconcilers'],
    ['endpointsDeleted', 'lateAddition', 'drain', 'overwrite'],
    all(26, 3, 5, 10),
  ),
  endpoints(
    ['serverDiesLast'],
    ['agents', 'twoServers', 'secondFamily'],
    ['lateAddition', 'drain', 'drain'],
    few(60, 8),
  ),
  endpoints(['busy', 'slowNetwork'], ['twoServers', 'halts', 'lossyWrites'], ['outage'], few(120, 12)),
  endpoints(['ownReconcilers', 'agents', 'crashLoop'], [], ['restore'], few(75, 25)),
  endpoints(
    ['serverDiesLast', 'silentSpares'],
    ['agents', 'lateProcesses'],
    ['serverDies', 'serverRestarts', 'stall'],
    few(30, 10),
  ),
  endpoints(
    ['serverDiesLast', 'lossyPath'],
    ['agents', 'lateProcesses', 'twoServers'],
    ['serverDies', 'networkOutage'],
    few(30, 10),
  ),
  endpoints(['longLeases'], ['agents', 'busy', 'otherStack'], ['probeOutage', 'overwrite'], few(60, 20)),
  endpoints(
    ['secondFamily'],
    ['agents', 'twoServers', 'prune', 'lossyWrites', 'serverDiesLast'],
    ['drain', 'drainAll', 'serverDies', 'serverRestarts', 'lateAddition', 'foreignSlice'],
    few(30, 4, 8),
  ),
  endpoints(
    ['prune'],
    ['agents', 'secondFamily', 'brokenLists', 'twoServers'],
    ['foreignSlice', 'endpointsDeleted', 'serverDies', 'networkOutage', 'outage'],
    few(45, 8),
  ),
  ranges(['webhook', 'slowReads', 'busy'], ['requests'], ['pause'], few(45, 6)),
  endpoints([], ['twoServers', 'serverDiesLast', 'agents', 'otherStack'], ['rotate', 'pause', 'observe'], few(30, 10)),
  both(
    ['webhook'],
    ['twoServers', 'dns', 'serverDiesLast', 'oneServerKubeconfig', 'olderVersion', 'otherStack'],
    ['rotate', 'replaceServer', 'recordChanges', 'loseRegistration'],
    few(28, 8, 16),
  ),
  endpoints([], ['agents', 'serverDiesLast'], ['moveControlPlane'], few(30, 8)),
  ranges(['webhook', 'storeFails'], ['requests'], ['moveControlPlane', 'changeRange'], few(90, 15, 30)),
  ranges(
    ['webhook'],
    [
      'requests',
      'nodePorts',
      'slowReads',
      'skewedFunctions',
      'lossyWrites',
      'busy',
      'brokenLists',
      'olderVersion',
      'otherStack',
    ],
    ['observe', 'restore', 'repairsStop', 'deployment', 'loseRegistration'],
    all(48, 6, 12, 20),
  ),
  ranges(
    ['webhook', 'slowReads', 'fewNames', 'wideRange'],
    ['requests', 'dualStack', 'skewedFunctions'],
    ['stall', 'deployment'],
    few(135, 35),
  ),
  ranges(['webhook', 'slowReads', 'fewNames', 'wideRange'], [], [], few(160, 40)),
  ranges(
    ['requests', 'contention', 'busy'],
    ['webhook', 'tightRange', 'slowReads', 'lossyWrites', 'slowNetwork'],
    ['lossyNetwork', 'stall', 'deployment'],
    all(30, 5, 10),
  ),
  ranges(['requests', 'contention', 'halts', 'busy'], ['webhook', 'tightRange', 'nodePorts'], [], few(20, 10)),
  ranges(['requests', 'halts', 'busy', 'wideRange'], ['nodePorts', 'dualStack'], [], few(30, 10)),
  ranges(
    ['webhook', 'tightRange', 'busy', 'lossyWrites'],
    ['contention', 'slowNetwork', 'nodePorts', 'olderVersion'],
    ['lossyNetwork', 'stall'],
    all(45, 5, 10, 20),
  ),
  ranges(
    ['webhook', 'contention', 'wideRange'],
    ['busy', 'nodePorts', 'dualStack', 'lossyWrites', 'slowNetwork'],
    ['flood', 'lossyNetwork', 'stall'],
    few(16, 5),
  ),
  ranges(
    ['webhook', 'busy'],
    ['requests', 'contention', 'tightRange', 'slowReads', 'nodePorts', 'lossyWrites'],
    ['changeRange', 'restore', 'observe', 'pause'],
    few(24, 4, 10),
  ),
  ranges(['webhook', 'requests', 'busy'], ['nodePorts', 'brokenLists'], ['restore'], few(30, 10)),
  ranges(
    ['requests', 'busy'],
    ['webhook', 'tightRange', 'nodePorts', 'olderVersion', 'otherStack'],
    ['observe'],
    few(26, 7),
  ),
  ranges(['requests', 'busy'], ['webhook', 'tightRange', 'nodePorts'], ['restore'], few(26, 7)),
  endpoints(
    ['secondFamily', 'prune'],
    ['agents', 'twoServers'],
    ['familyOutage', 'foreignSlice', 'familyOutage'],
    few(30, 10),
  ),
  endpoints([], ['agents'], ['specDropsWithdrawn'], few(45, 20)),
  endpoints([], ['agents', 'twoServers'], ['drain', 'networkOutage', 'probeOutage', 'drain'], few(40, 6)),
  endpoints(['contestedLast'], ['agents', 'prune'], ['blip'], few(30, 15)),
  endpoints(['balancer'], ['agents'], ['nameFails', 'nameFails', 'serverDies'], few(45, 12)),
  addresses(
    ['repairAddresses', 'slowAdmission'],
    ['skewedApiServers', 'oddServices'],
    ['damageRecord', 'holdAddress'],
    few(60, 6, 12),
  ),
  addresses(
    [],
    ['repairAddresses', 'slowAdmission', 'refusedRecords', 'outOfRange', 'oddServices', 'skewedFunctions', 'slowReads'],
    ['damageRecord', 'holdAddress', 'pause', 'deployment', 'stall'],
    few(60, 6, 12),
  ),
  addresses(
    ['repairAddresses'],
    ['outOfRange', 'refusedRecords', 'oddServices', 'brokenLists', 'laggingCaches'],
    ['damageRecord', 'changeCidrs'],
    few(40, 5),
  ),
  addresses(
    ['repairAddresses', 'slowAdmission'],
    ['otherStack', 'ownRepair'],
    ['damageRecord', 'observe', 'pause', 'holdAddress'],
    few(60, 15),
  ),
  addresses(
    ['repairAddresses', 'ownRepair'],
    ['slowAdmission', 'skewedApiServers', 'refusedRecords', 'laggingCaches'],
    ['damageRecord', 'changeCidrs', 'changeCidrs', 'holdAddress'],
    few(50, 6),
  ),
  endpoints(
    ['attacker', 'serverDiesLast'],
    ['agents', 'twoServers'],
    ['drain', 'serverDies', 'blip', 'deployment'],
    few(60, 10, 20),
  ),
  endpoints(['dns', 'serverDiesLast'], ['agents', 'twoServers'], ['nameFails', 'restore', 'recordChanges'], few(45, 8)),
];

/** Returns a theme with all features, each in half of the seeds. Half of them have the endpoints, the others the ranges. */
export function everything(chance: Chance): Theme {
  const part = chance.oneOf<Part>(['endpoints', 'ranges']);
  const ofPart = THEMES.filter(({ parts }) => parts.includes(part));
  // A seed has few kinds of incidents but many incidents of each kind, because a second incident might begin in the state that
  // the first one left.
  return {
    parts: [part],
    always: [],
    perhaps: FEATURES,
    incidents: [...new Set(ofPart.flatMap(({ incidents }) => incidents))].filter(() => chance.once(2)),
    ...all(28, 4, 8, 16),
  };
}
