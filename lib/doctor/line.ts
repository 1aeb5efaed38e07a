import type { QueueDepth } from '../aws/sqs-queue.ts';
import type { LoadKubeconfig } from '../runtime/load-kubeconfig.ts';
import { describeError } from '../telemetry/describe-error.ts';

/** What the doctor needs besides the environment of every function. */
export interface DoctorEnvironment {
  /** Reads it again each time: it may have been corrected just now. */
  readonly loadKubeconfig: LoadKubeconfig;
  /** Absent, as on a developer's machine: the queues are not known, and none is checked. */
  readonly queues?: {
    readonly urls: readonly string[];
    readonly depth: QueueDepth;
    /** Messages of a queue that are processed at the same time. Absent: it is not known. */
    readonly concurrency?: number;
  };
}

export type Check =
  | 'table'
  | 'clock'
  | 'clusters'
  | 'queue'
  | 'spec'
  | 'passes'
  | 'kubeconfig'
  | 'token'
  | 'dns'
  | 'api server'
  | 'probe'
  | 'rights'
  | 'service'
  | 'owner'
  | 'time';

export interface DoctorLine {
  /** Absent: it concerns all clusters. */
  readonly cluster?: string;
  readonly check: Check;
  readonly level: 'ok' | 'warn' | 'fail';
  readonly message: string;
  /** Absent where the message says it. */
  readonly fix?: string;
}

export function ok(check: Check, message: string): DoctorLine {
  return { check, level: 'ok', message };
}

export function warn(check: Check, message: string, fix: string): DoctorLine {
  return { check, level: 'warn', message, fix };
}

export function fail(check: Check, message: string, fix?: string): DoctorLine {
  return { check, level: 'fail', message, ...(fix !== undefined && { fix }) };
}

/** Returns what was thrown as a line: the messages of expected errors say what to do. */
export function failed(check: Check, error: unknown): DoctorLine {
  return fail(check, describeError(error).message);
}

export async function checked(
  check: Check,
  work: () => Promise<readonly DoctorLine[]>,
): Promise<readonly DoctorLine[]> {
  try {
    return await work();
  } catch (error) {
    return [failed(check, error)];
  }
}
