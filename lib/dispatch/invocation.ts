import type { Telemetry } from '../telemetry/telemetry.ts';
import type { Environment } from './environment.ts';

/** One call of a function. */
export interface Invocation {
  readonly environment: Environment;
  readonly telemetry: Telemetry;
  /** How long the function may still run. */
  readonly remainingMs: () => number;
}
