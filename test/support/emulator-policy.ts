import type { AwsCall } from '../deploy/emulator-calls.ts';
import { readInRepository } from './repository.ts';

type OneOrMore = string | readonly string[];

export interface Statement {
  readonly Effect: 'Allow' | 'Deny';
  readonly Action: OneOrMore;
  readonly Resource: OneOrMore;
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, OneOrMore>>>>;
}

/** Returns a policy of `deploy/policies`. */
export function shippedPolicy(name: string): { readonly Version: string; readonly Statement: readonly Statement[] } {
  return JSON.parse(readInRepository(`deploy/policies/${name}.json`));
}

const NEEDS_NO_GRANT = new Set(['sts:GetCallerIdentity']);

/** Returns the calls that no statement allows, without repetitions. */
export function notGranted(calls: readonly AwsCall[], statements: readonly Statement[]): string[] {
  const missing = calls.filter((call) => !isGranted(call, statements));
  return [...new Set(missing.map(({ caller, action, resource }) => `${caller} called ${action} on ${resource}`))];
}

/**
 * Returns whether the statements allow a call. The only condition that is checked is the one on the partition of a table.
 * @param call `leadingKey` is the partition. If it is absent, no condition is checked
 */
export function isGranted(
  { action, resource, leadingKey }: Omit<AwsCall, 'caller'> & { readonly leadingKey?: string },
  statements: readonly Statement[],
): boolean {
  if (NEEDS_NO_GRANT.has(action)) return true;
  const concerning = statements.filter(
    (statement) =>
      some(statement.Action, (pattern) => matches(pattern.toLowerCase(), action.toLowerCase())) &&
      some(statement.Resource, (pattern) => matches(pattern, resource) || isSecretOfThatName(pattern, resource)) &&
      (leadingKey === undefined || isForPartition(statement, leadingKey)),
  );
  return concerning.length > 0 && concerning.every(({ Effect }) => Effect === 'Allow');
}

function isForPartition({ Condition = {} }: Statement, leadingKey: string): boolean {
  const patternsOf = (operator: string) => Condition[`ForAllValues:${operator}`]?.['dynamodb:LeadingKeys'];
  const [equals, notLike] = ['StringEquals', 'StringNotLike'].map(patternsOf);
  const isLike = (pattern: string) => matches(pattern, leadingKey);
  return (equals === undefined || some(equals, isLike)) && (notLike === undefined || !some(notLike, isLike));
}

/**
 * Returns whether the pattern matches the ARN of the secret. An ARN ends in six characters that are not in the name of the
 * secret. Policies end in `-??????` or `*`, so a call by name counts as a call by an ARN with any ending.
 */
function isSecretOfThatName(pattern: string, resource: string): boolean {
  return resource.includes(':secretsmanager:') && matches(pattern, `${resource}-aBcDeF`);
}

function matches(pattern: string, text: string): boolean {
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`).test(text);
}

function some(values: OneOrMore, test: (value: string) => boolean): boolean {
  return (typeof values === 'string' ? [values] : values).some(test);
}
