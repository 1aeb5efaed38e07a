import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { type LogsQueryOptions, logsQuery } from '../../../cli/explain/logs-query.ts';
import { LOOPS } from '../../../lib/cluster/cluster-spec.ts';
import { logPass } from '../../../lib/dispatch/log-pass.ts';
import { recordingTelemetry } from '../../support/recording-telemetry.ts';

const repository = path.join(import.meta.dirname, '..', '..', '..');
const HOUR_MS = 3_600_000;

const aQuery = (options: Partial<LogsQueryOptions> = {}) =>
  logsQuery({ cluster: 'prod-1', sinceMs: HOUR_MS, ...options });

type Line = Readonly<Record<string, unknown>>;

/** Lines of passes that changed, observed and failed, as functions log them. */
function loggedLines(): Line[] {
  const telemetry = recordingTelemetry();
  const three = (word: string) => [1, 2, 3].map((number) => word + number);
  const findings = three('what').map((message) => ({ type: 'duplicate' as const, message }));
  const pass = {
    passId: 'p-1',
    mode: 'enforce',
    startedAtMs: 0,
    durationMs: 12,
    errors: [],
    wouldWrite: [],
    withoutAnswer: 0,
  } as const;
  const report = { changes: three('changed'), findings, counts: { services: 2 }, errors: [] };
  logPass(telemetry, 'cluster-ip-repair', 'prod-1', { ...pass, report });
  logPass(telemetry, 'cluster-ip-repair', 'prod-1', { ...pass, mode: 'observe', report, wouldWrite: three('write') });
  const errors = three('no').map((text) => new TypeError(text));
  logPass(telemetry, 'cluster-ip-repair', 'prod-1', { ...pass, errors });
  return telemetry.lines.map(({ fields, ...line }) => ({ ...line, loop: 'cluster-ip-repair', ...fields }));
}

const lines = loggedLines();

/** As Insights finds it in a JSON line: `findings.0`. */
function valueAt(line: Line, field: string): unknown {
  return field
    .split('.')
    .reduce<unknown>((value, step) => (value === undefined ? undefined : Object(value)[step]), line);
}

/** The names in the `fields` command, and those that filters compare. */
function fieldsIn(query: string): string[] {
  const shown = (/^fields (.+)$/m.exec(query)?.[1] ?? '').split(', ');
  const compared = [...query.matchAll(/(?:filter|and) (@?[\w.]+) (?:=|in|like) /g)].map(([, name = '']) => name);
  return [...shown, ...compared];
}

describe('the query', () => {
  test.each<Partial<LogsQueryOptions>>([{}, { failures: true }, { finding: 'duplicate' }])(
    'a query with %j names fields of our lines, or of CloudWatch',
    (options) => {
      const names = fieldsIn(aQuery({ loop: 'cluster-ip-repair', ...options }).query);
      expect(names.length).toBeGreaterThan(5);
      const known = (name: string) =>
        name === '@timestamp' || name === '@message' || lines.some((line) => valueAt(line, name) !== undefined);
      expect(names.filter((name) => !known(name))).toEqual([]);
    },
  );

  test('selects exactly the messages that are logged', () => {
    const logged = new Set(lines.map(({ message }) => message));
    const [, messages = '[]'] = /message in (\[.+\])/.exec(aQuery().query) ?? [];
    expect(JSON.parse(messages)).toEqual([...logged]);
  });

  test('a query of a finding matches its lines, and no line of another', () => {
    const matching = (finding: string) => {
      const pattern = new RegExp(/like \/(.+)\/$/m.exec(aQuery({ finding }).query)?.[1] ?? 'none');
      return lines.filter((line) => pattern.test(JSON.stringify(line))).length;
    };
    expect(['duplicate', 'leak', 'dup'].map(matching)).toEqual([2, 0, 0]);
  });

  test('the query has one clause on each line', () => {
    expect(aQuery({ loop: 'node-port-repair', failures: true }).query).toBe(
      `fields @timestamp, loop, level, message, durationMs, errors.0, errors.1, errors.2, stack.0, passId
| filter cluster = "prod-1" and loop = "node-port-repair"
| filter message = "pass failed"
| sort @timestamp desc
| limit 200`,
    );
  });

  test('the query keeps an invalid name within its quotes', () => {
    expect(aQuery({ cluster: 'a" or "b' }).query).toContain('cluster = "a\\" or \\"b"');
  });
});

test('the log groups are those of the functions that are deployed, or of the stack and loop that are asked for', () => {
  const { service, provider, functions } = parse(readFileSync(path.join(repository, 'serverless.yml'), 'utf8'));
  const stage = /'(\w+)'\}$/.exec(provider.stage)?.[1];
  const deployed = Object.keys(functions).map((name) => `/aws/lambda/${service}-${stage}-${name}`);
  const { logGroups } = aQuery();
  expect(logGroups).toHaveLength(LOOPS.length);
  expect(deployed).toEqual(expect.arrayContaining([...logGroups]));
  expect(aQuery({ loop: 'node-port-repair', stack: 'kbc-prod' }).logGroups).toEqual([
    '/aws/lambda/kbc-prod-node-port-repair',
  ]);
});

test('the command gives the AWS CLI the query, the time, the profile and the region, and quotes hostile names', async () => {
  const options = { cluster: "a'$(reboot)", profile: 'my profile', region: 'eu-central-1', sinceMs: HOUR_MS / 2 };
  const { start, results, query, logGroups } = aQuery(options);
  // The shell itself takes the command apart.
  const script = `date() { echo 100000; }\naws() { printf '%s\\0' "$@"; }\n${start}`;
  const { stdout } = await promisify(execFile)('sh', ['-c', script]);
  expect(stdout.split('\0').slice(0, -1)).toEqual([
    ...['--profile', 'my profile', '--region', 'eu-central-1'],
    ...['logs', 'start-query', '--output', 'text', '--query', 'queryId'],
    ...['--log-group-names', ...logGroups],
    ...['--start-time', '98200', '--end-time', '100000'],
    ...['--query-string', query],
  ]);
  expect(results).toBe("aws --profile 'my profile' --region eu-central-1 logs get-query-results --query-id <id>");
});
