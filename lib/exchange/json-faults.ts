import type * as z from 'zod/mini';
import { type ExchangeError, malformed } from './errors.ts';

const MOST_TOLD = 5;

/** What is wrong with a JSON object, in one sentence. */
export function jsonFaults({ issues }: Pick<z.core.$ZodError, 'issues'>): ExchangeError {
  const told = issues.slice(0, MOST_TOLD).map(faultOf);
  const more = issues.length > MOST_TOLD ? [`and ${issues.length - MOST_TOLD} more faults`] : [];
  return malformed([...told, ...more].join('; '));
}

function faultOf(issue: z.core.$ZodIssue): string {
  const at = issue.path.length === 0 ? 'the file' : issue.path.join('.');
  if (issue.code === 'invalid_type') return `${at} is missing or not of type ${issue.expected}`;
  if (issue.code === 'invalid_value') return `${at} is none of ${issue.values.map(String).join(', ')}`;
  if (issue.code === 'unrecognized_keys') return `${at} has fields that are not known: ${issue.keys.join(', ')}`;
  return `${at} is not as it should be`;
}
