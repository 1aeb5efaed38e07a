import type { Parameters } from './check-parameters.ts';

type Functions = Record<string, { reservedConcurrency?: number }>;

/** Takes the function out unless the parameter `admission` is on, and bounds how often it runs at the same time. */
export function applyAdmission(functions: Functions, { admission, admissionConcurrency }: Parameters): void {
  const { admission: itself } = functions;
  if (itself === undefined) return;
  if (admission !== 'on') delete functions['admission'];
  else if (admissionConcurrency !== 'none') itself.reservedConcurrency = Number(admissionConcurrency);
}
