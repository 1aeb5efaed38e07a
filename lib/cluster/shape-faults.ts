import type * as z from 'zod/mini';

const MOST_LISTED = 20;
/** The message of zod for a shape without its own. */
const NO_MESSAGE = 'Invalid input';

/** Returns the faults of a value in one sentence, each with its path. `whole` names the value itself. */
export function shapeFaults({ issues }: Pick<z.core.$ZodError, 'issues'>, whole: string): string {
  const listed = issues.slice(0, MOST_LISTED).map((issue) => faultOf(issue, whole));
  const more = issues.length > MOST_LISTED ? [`and ${issues.length - MOST_LISTED} more`] : [];
  return [...listed, ...more].join('; ');
}

function faultOf(issue: z.core.$ZodIssue, whole: string): string {
  const at = issue.path.length === 0 ? whole : issue.path.join('.');
  if (issue.code === 'unrecognized_keys') {
    const keys = `${issue.keys.map((key) => `"${key}"`).join(', ')} is not known`;
    return issue.path.length === 0 ? keys : `${at}: ${keys}`;
  }
  if (issue.code === 'invalid_type') return `${at} is not of type ${issue.expected}`;
  if (issue.message !== NO_MESSAGE) return `${at} ${issue.message}`;
  return issue.code === 'invalid_value' ? `${at} is none of ${issue.values.join(', ')}` : `${at} is not valid`;
}
