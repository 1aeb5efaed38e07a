import { describeError } from '../telemetry/telemetry.ts';
import { unlessAborted } from '../util/async.ts';
import { defined } from '../util/values.ts';

export interface DoctorLine {
  /** The name of the cluster. Absent if the line concerns all clusters. */
  readonly cluster?: string;
  /** What was checked, such as `table`, `kubeconfig` or `rights`. */
  readonly check: string;
  readonly level: 'ok' | 'warn' | 'fail';
  readonly message: string;
  /** The action that resolves the fault. Absent if the message contains the action. */
  readonly fix?: string;
}

/** The lines of a check. */
export type CheckResult = Promise<readonly DoctorLine[]>;

export function ok(check: string, message: string): DoctorLine {
  return { check, level: 'ok', message };
}

export function warn(check: string, message: string, fix: string): DoctorLine {
  return { check, level: 'warn', message, fix };
}

export function fail(check: string, message: string, fix?: string): DoctorLine {
  return { check, level: 'fail', message, ...defined({ fix }) };
}

/** Returns the line for an error. The line has no `fix`, because the message of an expected error contains the action. */
export function failed(check: string, error: unknown): DoctorLine {
  return fail(check, describeError(error).message);
}

/** Returns the lines of a check. If the check throws, or has not ended when the signal aborts, returns a line for the error. */
export function checked(check: string, signal: AbortSignal, work: () => CheckResult): CheckResult {
  return unlessAborted(signal, work).catch((error: unknown) => [failed(check, error)]);
}
