import { LOOPS, type Loop } from '../cluster/cluster-spec.ts';

/** The lines to find. */
export type WantedLines =
  /** Passes with changes, findings or errors: others write no line. */
  | { readonly kind: 'passes' }
  /** Passes that failed, with their errors. */
  | { readonly kind: 'failures' }
  /** Passes that found something of this type. */
  | { readonly kind: 'findings'; readonly type: string };

export interface LogsQueryOptions {
  readonly cluster: string;
  /** Default: all loops. */
  readonly loop?: Loop;
  /** How far back. Default: 3. */
  readonly hours?: number;
  /** What the names of the log groups begin with. Default: those of the stack that `npm run deploy` makes. */
  readonly logGroupPrefix?: string;
  /** Default: passes. */
  readonly wanted?: WantedLines;
  /** Options of the AWS CLI; default: its own. */
  readonly profile?: string;
  readonly region?: string;
}

export interface LogsQuery {
  /** In the language of CloudWatch Logs Insights, a command a line. */
  readonly query: string;
  readonly logGroups: readonly string[];
  /** For a POSIX shell. It prints the id of the query. */
  readonly start: string;
  /** Prints what the query found, given that id. */
  readonly results: string;
}

const DEFAULT_STACK = 'kube-bootstrap-controller-dev';
const DEFAULT_HOURS = 3;
const MOST_LINES = 200;
/** Entries of a list that are shown; a line has up to 20. */
const ENTRIES = 3;

/** Returns the prefix of a stack's log groups (`<service>-<stage>`, as in `serverless.yml`). */
export function logGroupPrefixOf(stack: string): string {
  return `/aws/lambda/${stack}-`;
}

/** Returns the query for a cluster's passes in CloudWatch, and the command of the AWS CLI that runs it. */
export function logsQuery(options: LogsQueryOptions): LogsQuery {
  const { loop, hours = DEFAULT_HOURS, logGroupPrefix = logGroupPrefixOf(DEFAULT_STACK) } = options;
  const logGroups = (loop === undefined ? LOOPS : [loop]).map((name) => `${logGroupPrefix}${name}`);
  const query = queryText(options);
  const aws = ['aws', ...given('--profile', options.profile), ...given('--region', options.region), 'logs'].join(' ');
  const start = [
    `${aws} start-query --output text --query queryId`,
    `--log-group-names ${logGroups.map(shellWord).join(' ')}`,
    `--start-time $(($(date +%s) - ${Math.ceil(hours * 3600)})) --end-time $(date +%s)`,
    `--query-string ${shellWord(query)}`,
  ].join(' \\\n  ');
  return { query, logGroups, start, results: `${aws} get-query-results --query-id <id>` };
}

function queryText({ cluster, loop, wanted = { kind: 'passes' } }: LogsQueryOptions): string {
  const { shown, filters } = partsOf(wanted);
  return [
    `fields @timestamp, ${['loop', 'level', 'message', ...shown].join(', ')}`,
    `filter cluster = ${quoted(cluster)}${loop === undefined ? '' : ` and loop = ${quoted(loop)}`}`,
    ...filters.map((filter) => `filter ${filter}`),
    'sort @timestamp desc',
    `limit ${MOST_LINES}`,
  ].join('\n| ');
}

function partsOf(wanted: WantedLines): { readonly shown: readonly string[]; readonly filters: readonly string[] } {
  switch (wanted.kind) {
    case 'passes':
      return {
        shown: [
          'mode',
          'durationMs',
          ...entries('changes'),
          ...entries('wouldWrite'),
          ...entries('findings'),
          'errors.0',
        ],
        filters: ['message in ["pass succeeded", "pass failed"]'],
      };
    case 'failures':
      return { shown: ['durationMs', ...entries('errors'), 'stack.0', 'passId'], filters: ['message = "pass failed"'] };
    case 'findings':
      return { shown: entries('findings'), filters: [`@message like /"${pattern(wanted.type)}: /`] };
  }
}

/** Insights has a field for each entry of a list. */
function entries(field: string): string[] {
  return Array.from({ length: ENTRIES }, (_, index) => `${field}.${index}`);
}

function given(option: string, value: string | undefined): string[] {
  return value === undefined ? [] : [option, shellWord(value)];
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}

function pattern(text: string): string {
  return text.replace(/[^\w]/g, '\\$&');
}

function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
