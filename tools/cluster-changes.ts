import { userInfo } from 'node:os';
import {
  pauseAllClusters,
  pauseCluster,
  takeOverCluster,
  unregisterCluster,
} from '../lib/table/cluster-registration.ts';
import { type Pause, readCluster } from '../lib/table/clusters.ts';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';

const DEFAULT_HOURS = 24;
/** As good as for ever, and still a date. */
const MOST_HOURS = 24 * 365;

/** What may be said of clusters that are registered already; at most one of the first four. */
export interface Wanted {
  /** The stack that is to own them. */
  readonly 'take-over'?: string;
  readonly remove?: boolean;
  /** Why their passes are held. */
  readonly pause?: string;
  readonly resume?: boolean;
  readonly hours?: string;
  /** Every cluster: with `pause` and `resume` alone. */
  readonly all?: boolean;
}

/** @returns what was done, in words. @throws Refused. */
export type Change = (table: KeyValueTable) => Promise<string>;

/** What was asked for cannot be done, and the message says why. */
export class Refused extends Error {}

/** `undefined`: nothing of the kind is wanted. A text: what is wrong with it. */
export function changesOf(wanted: Wanted, names: readonly string[]): readonly Change[] | string | undefined {
  const { 'take-over': stack, remove, pause, resume, all = false } = wanted;
  const verbs = [stack, remove, pause, resume].filter((verb) => verb !== undefined).length;
  if (verbs === 0) return wanted.hours === undefined && !all ? undefined : '--hours and --all are of --pause';
  if (verbs > 1) return 'One at a time: --take-over, --remove, --pause or --resume';
  if (all && (names.length > 0 || (pause === undefined && resume === undefined))) {
    return '--all goes with --pause or --resume, and without names';
  }
  if (stack !== undefined) return names.map((name) => takeOver(name, stack));
  if (remove !== undefined) return names.map(removal);
  const hold = pause === undefined ? undefined : pauseOf(pause, wanted.hours);
  if (typeof hold === 'string') return hold;
  return all ? [holdOnAll(hold)] : names.map((name) => holdOnOne(name, hold));
}

function pauseOf(reason: string, hours: string = String(DEFAULT_HOURS)): Pause | string {
  const count = Number(hours);
  if (!(count > 0 && count <= MOST_HOURS)) return `--hours must be more than 0 and at most ${MOST_HOURS}`;
  return { untilMs: Date.now() + Math.ceil(count * 3_600_000), reason, by: userInfo().username };
}

function takeOver(name: string, stack: string): Change {
  return async (table) => told(name, await takeOverCluster(table, name, stack), `owned by ${stack}`);
}

function removal(name: string): Change {
  return async (table) => {
    const { stack, packaged } = (await readCluster(table, name))?.owner ?? {};
    if (packaged !== undefined) {
      throw new Refused(`${name} is the cluster.yml of the stack ${stack}: take it out there and deploy.`);
    }
    return told(name, await unregisterCluster(table, name), 'removed; its endpoints stay as they are');
  };
}

function holdOnOne(name: string, pause: Pause | undefined): Change {
  return async (table) => told(name, await pauseCluster(table, name, pause), inWords(pause));
}

function holdOnAll(pause: Pause | undefined): Change {
  return async (table) => {
    await pauseAllClusters(table, pause);
    return `all clusters: ${inWords(pause)}`;
  };
}

function inWords(pause: Pause | undefined): string {
  return pause === undefined ? 'not paused' : `paused until ${new Date(pause.untilMs).toISOString()}`;
}

function told(name: string, isRegistered: boolean, what: string): string {
  if (!isRegistered) throw new Refused(`No cluster of the name ${name} is registered in the table.`);
  return `${name}: ${what}`;
}
