import type { Chance } from './clock.ts';
import { FEATURES, type Feature, type Part } from './settings.ts';

/** The subject of a seed: few kinds of events, which happen often in a short time. */
export interface Theme {
  readonly parts: readonly Part[];
  /** The features of all seeds of the theme. */
  readonly always: readonly Feature[];
  /** The features that some seeds of the theme have. */
  readonly perhaps: readonly Feature[];
  readonly incidents: readonly string[];
  readonly rates: Rates;
  readonly longestMs: number;
  /** The average times between two incidents, of which a seed uses one. */
  readonly pausesMs: readonly number[];
}
type Rates = readonly [readonly number[], ...(readonly number[])[]];

/** Named sets of lists of fault rates. A seed uses one list of its theme's set, and each fault gets one rate from that list. */
const RATES: Readonly<Record<string, Rates>> = {
  // Runs with few faults get far, runs with many reach rare states, and runs without faults show the effects of concurrency
  // alone.
  all: [[0], [0, 400], [60, 400], [15, 60, 400], [15, 60]],
  few: [[0], [0, 400], [60, 400]],
  some: [
    [0, 0, 60],
    [0, 60, 400],
  ],
  many: [[15, 60], [15, 60, 400], [60]],
};

/** The columns are: parts, features of all seeds, features of some, incidents, rates, longest time and pauses in seconds. */
const TABLE = `
endpoints | agents crashLoop lossyWrites ownReconcilers | twoServers rollouts skewedMachines slowNetwork | blip drain drainAll agentDies | few | 90 | 4 10 20
endpoints | agents crashLoop busy | twoServers skewedFunctions | drainAll | some | 90 | 10
endpoints | | agents | undoIsLost | few | 60 | 12
endpoints | agents | rollouts twoServers lossyWrites skewedFunctions slowNetwork | drainAll drain lossyNetwork deployment | many | 90 | 4 10 20
endpoints | rollouts | agents twoServers slowNetwork slowReads ownReconcilers | endpointsDeleted lateAddition drain overwrite | all | 120 | 4 10 20
endpoints | serverDiesLast | agents twoServers secondFamily | lateAddition drain drain | few | 120 | 10
endpoints | busy slowNetwork | twoServers halts lossyWrites | outage | few | 240 | 15
endpoints | ownReconcilers agents crashLoop | | restore | few | 150 | 40
endpoints | serverDiesLast silentSpares | agents lateProcesses | serverDies serverRestarts stall | few | 60 | 15
endpoints | serverDiesLast lossyPath | agents lateProcesses twoServers | serverDies networkOutage | few | 60 | 15
endpoints | longLeases | agents busy otherStack | probeOutage overwrite | few | 120 | 35
endpoints | secondFamily | agents twoServers prune lossyWrites serverDiesLast | drain drainAll serverDies serverRestarts lateAddition foreignSlice | few | 90 | 6 12
endpoints | prune | agents secondFamily brokenLists twoServers | foreignSlice endpointsDeleted serverDies networkOutage outage | few | 90 | 10
ranges | webhook slowReads busy | requests | pause | few | 90 | 8
endpoints | | twoServers serverDiesLast agents otherStack | rotate pause observe | few | 60 | 15
endpoints ranges | webhook | twoServers dns serverDiesLast oneServerKubeconfig olderVersion otherStack | rotate replaceServer recordChanges loseRegistration | few | 90 | 10 30
endpoints ranges | webhook busy | serverDiesLast requests | moveControlPlane | few | 60 | 10
ranges | webhook storeFails | requests | moveControlPlane changeRange | few | 150 | 15 40
ranges | webhook | requests nodePorts slowReads skewedFunctions lossyWrites busy brokenLists olderVersion otherStack | observe restore repairsStop deployment loseRegistration rotate | all | 120 | 6 15 40
ranges | webhook slowReads fewNames wideRange | requests dualStack skewedFunctions | stall deployment | few | 180 | 40
ranges | webhook slowReads fewNames wideRange | | | few | 180 | 40
ranges | requests contention busy | webhook tightRange slowReads lossyWrites slowNetwork | lossyNetwork stall deployment | all | 60 | 6 15 40
ranges | requests contention halts busy | webhook tightRange nodePorts | | few | 60 | 20
ranges | requests halts busy wideRange | nodePorts dualStack | | few | 60 | 20
ranges | webhook tightRange busy lossyWrites | contention slowNetwork nodePorts olderVersion | lossyNetwork stall | all | 120 | 6 15 40
ranges | webhook contention busy wideRange | nodePorts dualStack lossyWrites slowNetwork | flood flood lossyNetwork stall | few | 60 | 6 15
ranges | webhook busy | requests contention tightRange slowReads nodePorts lossyWrites | changeRange restore observe pause | few | 120 | 6 15 40
ranges | webhook requests busy | nodePorts brokenLists | restore | few | 60 | 15
ranges | requests busy | webhook tightRange nodePorts olderVersion otherStack | observe | few | 120 | 15
ranges | requests busy | webhook tightRange nodePorts | restore | few | 120 | 10
endpoints | secondFamily | agents twoServers prune | familyOutage foreignSlice familyOutage | few | 60 | 12
endpoints | | agents | specDropsWithdrawn | few | 90 | 30
endpoints | | agents twoServers | drain networkOutage probeOutage drain | few | 90 | 8
endpoints | contestedLast | agents prune | blip | few | 60 | 30
endpoints | balancer | agents | namePartFails namePartFails serverDies | few | 90 | 15
addresses | repairAddresses slowAdmission | skewedApiServers oddServices | damageRecord holdAddress | few | 90 | 8 20
addresses | | repairAddresses slowAdmission refusedRecords outOfRange oddServices skewedFunctions slowReads | damageRecord holdAddress pause deployment stall | few | 90 | 6 15
addresses | repairAddresses | outOfRange refusedRecords oddServices brokenLists | damageRecord changeCidrs | few | 60 | 6
addresses | repairAddresses slowAdmission | otherStack ownRepair | damageRecord observe pause holdAddress | few | 90 | 20
addresses | repairAddresses ownRepair | slowAdmission skewedApiServers refusedRecords | damageRecord changeCidrs changeCidrs holdAddress | few | 90 | 8
endpoints | dns serverDiesLast | agents twoServers | namesFail restore recordChanges | few | 90 | 10
`;

export const THEMES = TABLE.trim().split('\n').map(themeOf) as [Theme, ...Theme[]];

function themeOf(line: string): Theme {
  const words = line.split('|').map((column) => column.split(' ').filter(Boolean));
  const [parts = [], always = [], perhaps = [], incidents = [], [rates = ''] = [], [longest] = [], pauses = []] = words;
  return {
    parts: parts as Part[],
    always: always as Feature[],
    perhaps: perhaps as Feature[],
    incidents,
    rates: RATES[rates] as Rates,
    longestMs: 1000 * Number(longest),
    pausesMs: pauses.map((seconds) => 1000 * Number(seconds)),
  };
}

/** Returns a theme with all features, each in half of the seeds. A third has only the endpoints, and a third only the ranges. */
export function everything(chance: Chance): Theme {
  const parts = chance.oneOf<readonly Part[]>([['endpoints'], ['ranges'], ['endpoints', 'ranges']]);
  const ofParts = THEMES.filter((theme) => theme.parts.some((part) => parts.includes(part)));
  // A seed has few kinds of incidents but many incidents of each kind, because a second incident might begin in the state that
  // the first one left.
  const incidents = [...new Set(ofParts.flatMap((theme) => theme.incidents))].filter(() => chance.once(2));
  const pausesMs = [6_000, 15_000, 40_000];
  return {
    parts,
    always: [],
    perhaps: FEATURES,
    incidents,
    rates: RATES['all'] as Rates,
    longestMs: 120_000,
    pausesMs,
  };
}
