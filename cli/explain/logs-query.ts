import { LOOPS, type Loop } from '../../lib/cluster/cluster-spec.ts';

export interface LogsQueryOptions {
  readonly cluster: string;
  /** Default: all loops. */
  readonly loop?: Loop | undefined;
  readonly sinceMs: number;
  /** `<service>-<stage>`, as in `serverless.yml`. Default: the stack of `npm run deploy`. */
  readonly stack?: string | undefined;
  /**
   * Only passes that failed, with their errors. Default: passes with changes, findings or errors; others write no line.
   */
  readonly failures?: boolean | undefined;
  /** Only passes with a finding of this type. */
  readonly finding?: string | undefined;
  /** Options of the AWS CLI. Default: none. */
  readonly profile?: string | undefined;
  readonly region?: string | undefined;
}

export interface LogsQuery {
  /** The query for CloudWatch Logs Insights, one command per line. */
  readonly query: string;
  readonly logGroups: readonly string[];
  /** The POSIX shell command that starts the query and prints its id. */
  readonly start: string;
  /** The command that prints the results of the query with that id. */
  readonly results: string;
}

const DEFAULT_STACK = 'kube-bootstrap-controller-dev';
const MOST_LINES = 200;

/** Returns the query for a cluster's passes in CloudWatch, and the command of the AWS CLI that runs it. */
export function logsQuery(options: LogsQueryOptions): LogsQuery {
  const { loop, sinceMs, stack = DEFAULT_STACK, profile, region } = options;
  const logGroups = (loop === undefined ? LOOPS : [loop]).map((name) => `/aws/lambda/${stack}-${name}`);
  const query = queryText(options);
  const aws = ['aws', ...given('--profile', profile), ...given('--region', region), 'logs'].join(' ');
  const start = [
    `${aws} start-query --output text --query queryId`,
    `--log-group-names ${logGroups.map(shellWord).join(' ')}`,
    `--start-time $(($(date +%s) - ${Math.ceil(sinceMs / 1000)})) --end-time $(date +%s)`,
    `--query-string ${shellWord(query)}`,
  ].join(' \\\n  ');
  return { query, logGroups, start, results: `${aws} get-query-results --query-id <id>` };
}

function queryText({ cluster, loop, failures = false, finding }: LogsQueryOptions): string {
  const { fields, filter } = partsOf(failures, finding);
  return [
    `fields @timestamp, loop, level, message, ${fields.join(', ')}`,
    `filter cluster = ${quoted(cluster)}${loop === undefined ? '' : ` and loop = ${quoted(loop)}`}`,
    `filter ${filter}`,
    'sort @timestamp desc',
    `limit ${MOST_LINES}`,
  ].join('\n| ');
}

function partsOf(failures: boolean, finding: string | undefined) {
  if (failures) {
    return { fields: ['durationMs', ...entries('errors'), 'stack.0', 'passId'], filter: 'message = "pass failed"' };
  }
  const findings = entries('findings');
  if (finding !== undefined) return { fields: findings, filter: `@message like /"${finding}: /` };
  return {
    fields: ['mode', 'durationMs', ...entries('changes'), ...entries('wouldWrite'), ...findings, 'errors.0'],
    filter: 'message in ["pass succeeded", "pass failed"]',
  };
}

/** Returns the first three entries of a list: Insights has one field per entry. */
function entries(field: string): string[] {
  return [0, 1, 2].map((index) => `${field}.${index}`);
}

function given(option: string, value: string | undefined): string[] {
  return value === undefined ? [] : [option, shellWord(value)];
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}

function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
