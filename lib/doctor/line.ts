import { describeError } from '../telemetry/telemetry.ts';
import { defined } from '../util/values.ts';

export type Check =
  | 'table'
  | 'clock'
  | 'clusters'
  | 'queue'
  | 'spec'
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
  /** The name of the cluster. Absent if the line concerns all clusters. */
  readonly cluster?: string;
  readonly check: Check;
  readonly level: 'ok' | 'warn' | 'fail';
  readonly message: string;
  /** The action that resolves the fault. Absent if the message contains the action. */
  readonly fix?: string;
}

export function ok(check: Check, message: string): DoctorLine {
  return { check, level: 'ok', message };
}

export function warn(check: Check, message: string, fix: string): DoctorLine {
  return { check, level: 'warn', message, fix };
}

export function fail(check: Check, message: string, fix?: string): DoctorLine {
  return { check, level: 'fail', message, ...defined({ fix }) };
}

/** Returns the line for an error. It has no `fix`, because the message of an expected error contains the action. */
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
