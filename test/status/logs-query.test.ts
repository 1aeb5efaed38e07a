import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { LOOPS } from '../../lib/cluster/cluster-spec.ts';
import { logGroupPrefixOf, logsQuery, type WantedLines } from '../../lib/status/logs-query.ts';

const repository = path.join(import.meta.dirname, '..', '..');
const run = promisify(execFile);

/** Passes that changed, observed and failed, logged as the functions log them. */
const program = `
  import { powertoolsTelemetry } from './lib/telemetry/powertools.ts';
  import { logPass } from './lib/dispatch/log-pass.ts';
  const telemetry = powertoolsTelemetry({ loop: 'cluster-ip-repair', requestId: 'r-1' });
  const three = (word) => [1, 2, 3].map((number) => word + number);
  const findings = three('what').map((message) => ({ type: 'duplicate', message }));
  const pass = { passId: 'p-1', mode: 'enforce', startedAtMs: 0, durationMs: 12, errors: [], wouldWrite: [] };
  const report = { changes: three('changed'), findings, counts: { services: 2 }, errors: [] };
  logPass(telemetry, 'cluster-ip-repair', 'prod-1', { ...pass, report });
  logPass(telemetry, 'cluster-ip-repair', 'prod-1', { ...pass, mode: 'observe', report, wouldWrite: three('write') });
  logPass(telemetry, 'cluster-ip-repair', 'prod-1', { ...pass, errors: three('no').map((text) => new TypeError(text)) });
`;

type Line = Readonly<Record<string, unknown>>;
let lines: Line[] = [];
beforeAll(async () => {
  const args = ['--input-type=module-typescript', '--eval', program];
  const { stdout, stderr } = await run(process.execPath, args, { cwd: repository });
  lines = `${stderr}${stdout}`
    .trim()
    .split('\n')
    .map((line): Line => JSON.parse(line))
    .filter((line) => 'message' in line);
});

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

const everyKind: WantedLines[] = [{ kind: 'passes' }, { kind: 'failures' }, { kind: 'findings', type: 'duplicate' }];

describe('the query', () => {
  test.each(everyKind)('of $kind names fields that our lines have, or that CloudWatch adds', (wanted) => {
    const { query } = logsQuery({ cluster: 'prod-1', loop: 'cluster-ip-repair', wanted });
    const names = fieldsIn(query);
    expect(names.length).toBeGreaterThan(5);
    const missing = names.filter(
      (name) => !name.startsWith('@') && lines.every((line) => valueAt(line, name) === undefined),
    );
    expect(missing).toEqual([]);
    expect(names.filter((name) => name.startsWith('@') && name !== '@timestamp' && name !== '@message')).toEqual([]);
  });

  test('selects exactly the messages that are logged', () => {
    const logged = new Set(lines.map(({ message }) => message));
    const { query } = logsQuery({ cluster: 'prod-1' });
    expect(JSON.parse(/message in (\[.+\])/.exec(query)?.[1] ?? '[]')).toEqual([...logged].toSorted().toReversed());
    expect(logsQuery({ cluster: 'prod-1', wanted: { kind: 'failures' } }).query).toContain('message = "pass failed"');
  });

  test('of a finding matches its lines, and no line of another', () => {
    const matching = (type: string) => {
      const { query } = logsQuery({ cluster: 'prod-1', wanted: { kind: 'findings', type } });
      const pattern = new RegExp(/like \/(.+)\/$/m.exec(query)?.[1] ?? 'none');
      return lines.filter((line) => pattern.test(JSON.stringify(line))).length;
    };
    expect(['duplicate', 'leak', 'dup', '.+'].map(matching)).toEqual([2, 0, 0, 0]);
  });

  test('is one that a person can read', () => {
    expect(logsQuery({ cluster: 'prod-1', loop: 'node-port-repair', wanted: { kind: 'failures' } }).query).toBe(
      `fields @timestamp, loop, level, message, durationMs, errors.0, errors.1, errors.2, stack.0, passId
| filter cluster = "prod-1" and loop = "node-port-repair"
| filter message = "pass failed"
| sort @timestamp desc
| limit 200`,
    );
  });

  test('keeps a name that is none within its quotes', () => {
    expect(logsQuery({ cluster: 'a" or "b' }).query).toContain('cluster = "a\\" or \\"b"');
  });
});

describe('the log groups', () => {
  test('are those of the functions that are deployed', () => {
    const { service, provider, functions } = parse(readFileSync(path.join(repository, 'serverless.yml'), 'utf8'));
    const stage = /'(\w+)'\}$/.exec(provider.stage)?.[1];
    const deployed = Object.keys(functions).map((name) => `/aws/lambda/${service}-${stage}-${name}`);
    const { logGroups } = logsQuery({ cluster: 'prod-1' });
    expect(logGroups).toHaveLength(LOOPS.length);
    expect(logGroups.filter((group) => !deployed.includes(group))).toEqual([]);
  });

  test('are those of the stack and the loop that are asked for', () => {
    const logGroupPrefix = logGroupPrefixOf('kbc-prod');
    expect(logsQuery({ cluster: 'a', loop: 'node-port-repair', logGroupPrefix }).logGroups).toEqual([
      '/aws/lambda/kbc-prod-node-port-repair',
    ]);
  });
});

describe('the command', () => {
  /** What the AWS CLI would be given: the shell itself takes it apart. */
  async function argumentsOf(command: string): Promise<string[]> {
    const script = `date() { echo 100000; }\naws() { printf '%s\\0' "$@"; }\n${command}`;
    const { stdout } = await run('sh', ['-c', script]);
    return stdout.split('\0').slice(0, -1);
  }

  test('gives the AWS CLI the query, the groups and the time', async () => {
    const { start, query, logGroups } = logsQuery({ cluster: 'prod-1', hours: 0.5 });
    expect(await argumentsOf(start)).toEqual([
      ...['logs', 'start-query', '--output', 'text', '--query', 'queryId'],
      ...['--log-group-names', ...logGroups],
      ...['--start-time', '98200', '--end-time', '100000'],
      ...['--query-string', query],
    ]);
  });

  test('uses the given stack, profile and region, and quotes hostile names', async () => {
    const { start, results } = logsQuery({ cluster: "a'$(reboot)", profile: 'my profile', region: 'eu-central-1' });
    const [, profile, , region, ...rest] = await argumentsOf(start);
    expect([profile, region]).toEqual(['my profile', 'eu-central-1']);
    expect(rest.at(-1)).toContain(`cluster = "a'$(reboot)"`);
    expect(results).toBe("aws --profile 'my profile' --region eu-central-1 logs get-query-results --query-id <id>");
  });
});
