import type { QueueDepth } from '../aws/sqs-queue.ts';
import type { LoadKubeconfig } from '../runtime/load-kubeconfig.ts';
import { describeError } from '../telemetry/describe-error.ts';

/** What the doctor needs besides the environment of every function. */
export interface DoctorEnvironment {
  /** Reads it anew each time: whoever has just corrected it wants to know. */
  readonly loadKubeconfig: LoadKubeconfig;
  /** Absent, as on a person's machine: which there are is not known, and none is looked at. */
  readonly queues?: { readonly urls: readonly string[]; readonly depth: QueueDepth };
}

/** What is looked at. */
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

/** One thing that was looked at, and what to do when it is not well. */
export interface DoctorLine {
  /** Absent: it concerns them all. */
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

/** What was thrown, as a line: expected errors say themselves what to do. */
export function failed(check: Check, error: unknown): DoctorLine {
  return fail(check, describeError(error).message);
}

/** The lines of a look that may throw. */
export async function looked(check: Check, look: () => Promise<readonly DoctorLine[]>): Promise<readonly DoctorLine[]> {
  try {
    return await look();
  } catch (error) {
    return [failed(check, error)];
  }
}
