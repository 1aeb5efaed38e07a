import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import type { FindingType } from '../../lib/cluster/finding.ts';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import type { Loop } from '../../lib/spec/cluster-spec.ts';
import {
  describeError,
  errorSentence,
  failedPassCounter,
  findingCounter,
  samplesOf,
  stackOfFault,
} from '../../lib/telemetry/telemetry.ts';
import { REPOSITORY } from '../support/repository.ts';
import { running } from '../support/running.ts';

const program = `
  import { powertoolsTelemetry } from './lib/telemetry/powertools.ts';
  const telemetry = powertoolsTelemetry({ loop: 'node-port-repair', requestId: 'r-1' });
  telemetry.log('warn', 'pass succeeded', { cluster: 'demo', findings: ['leak: 30001'], counts: { services: 2 }, none: undefined });
  telemetry.count('apiserver_nodeport_repair_port_errors_total', 1, 'leak');
  telemetry.count('apiserver_nodeport_repair_port_errors_total', 2, 'leak');
  telemetry.count('apiserver_nodeport_repair_port_errors_total', 1, 'repair');
  telemetry.count('passes', 2);
  telemetry.count('failures', 0);
  telemetry.sample('durationMs', 12);
  telemetry.sample('durationMs', 34);
  telemetry.flush();
  telemetry.flush();
`;

/** A line of the standard output. */
type Line = Readonly<Record<string, unknown>>;

async function linesOf(text: string): Promise<Line[]> {
  const args = ['--input-type=module-typescript', '--eval', text];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { cwd: REPOSITORY });
  return `${stderr}${stdout}`
    .trim()
    .split('\n')
    .map((line): Line => JSON.parse(line));
}

const written = running(async () => ({ lines: await linesOf(program) }));

test('log lines are JSON and contain the loop and the request', () => {
  const logged = written.lines.filter((line) => 'message' in line);
  expect(logged).toHaveLength(1);
  expect(logged[0]).toMatchObject({
    level: 'WARN',
    message: 'pass succeeded',
    loop: 'node-port-repair',
    requestId: 'r-1',
    cluster: 'demo',
    findings: ['leak: 30001'],
    counts: { services: 2 },
  });
});

test('metrics are added up and written once, with an additional line for each type of finding', () => {
  const metrics = written.lines.filter((line) => '_aws' in line);
  const service = { service: 'kube-bootstrap-controller', loop: 'node-port-repair' };
  const count = (Name: string) => ({ Name, Unit: 'Count' });
  const directive = {
    Namespace: 'kube-bootstrap-controller',
    Dimensions: [['service', 'loop']],
    Metrics: [{ Name: 'durationMs', Unit: 'Milliseconds' }, count('passes'), count('failures')],
  };
  expect(metrics).toMatchObject([
    { ...service, passes: 2, failures: 0, durationMs: [12, 34], _aws: { CloudWatchMetrics: [directive] } },
    { ...service, type: 'leak', apiserver_nodeport_repair_port_errors_total: 3 },
    { ...service, type: 'repair', apiserver_nodeport_repair_port_errors_total: 1 },
  ]);
});

test('a log line with very long text of a tenant is shortened, and is still valid JSON', async () => {
  const [line] = await linesOf(`
    import { powertoolsTelemetry } from './lib/telemetry/powertools.ts';
    const mb = '\\u0007"'.repeat(500_000);
    const fields = { cluster: 'demo', detail: mb, findings: Array(1_000).fill(mb), counts: { services: 2 } };
    powertoolsTelemetry({ loop: 'node-port-repair' }).log('warn', 'pass succeeded', fields);
  `);
  expect(line).toMatchObject({ cluster: 'demo', counts: { services: 2 } });
  expect(JSON.stringify(line).length).toBeLessThan(256 * 1024);
  expect(line?.['findings']).toContainEqual(expect.stringMatching(/^and 9\d\d more$/));
});

const IP = 'apiserver_clusterip_repair_ip_errors_total';
const PORT = 'apiserver_nodeport_repair_port_errors_total';
const OF_BOTH: FindingType[] = ['leak', 'repair', 'full', 'outOfRange', 'duplicate', 'unknown'];

test.each<{ loop: Loop; types: FindingType[]; name: string }>([
  { loop: 'cluster-ip-repair', types: [...OF_BOTH, 'invalid'], name: IP },
  { loop: 'cluster-ip-repair', types: ['mayHaveLeaked', 'nothingFree', 'other'], name: 'findings' },
  { loop: 'node-port-repair', types: OF_BOTH, name: PORT },
  { loop: 'node-port-repair', types: ['invalid', 'mayHaveLeaked', 'nothingFree'], name: 'findings' },
  { loop: 'kubernetes-service', types: ['twoOwners', 'oddProbe'], name: 'findings' },
])('findings of the types $types of $loop are counted by the metric $name', ({ loop, types, name }) => {
  for (const type of types) expect(findingCounter(loop, type)).toBe(name);
});

test('only the repair loops count failed passes in a metric of upstream', () => {
  expect(failedPassCounter('cluster-ip-repair')).toBe('apiserver_clusterip_repair_reconcile_errors_total');
  expect(failedPassCounter('node-port-repair')).toBe('apiserver_nodeport_repair_reconcile_errors_total');
  expect(failedPassCounter('kubernetes-service')).toBeUndefined();
});

test.each([
  { name: 'no sample without leases and ranges', counts: { services: 3 }, samples: {} },
  { name: 'the number of active leases', counts: { addresses: 3, activeLeases: 2 }, samples: { activeLeases: 2 } },
  { name: 'the share of one range', counts: { allocated: 3, capacity: 254 }, samples: { fullestRangePercent: 1.1 } },
  {
    name: 'the used share of the fuller of two ranges',
    counts: { allocated: 3, capacity: 254, secondaryAllocated: 128, secondaryCapacity: 256 },
    samples: { fullestRangePercent: 50 },
  },
  { name: 'less than 100 %', counts: { allocated: 65_533, capacity: 65_534 }, samples: { fullestRangePercent: 99.9 } },
  { name: 'no sample for a range without capacity', counts: { allocated: 0, capacity: 0 }, samples: {} },
])('samplesOf returns $name', ({ counts, samples }) => {
  expect(samplesOf(counts as Readonly<Record<string, number>>)).toEqual(samples);
});

const NOT_PARSED = 'the kubeconfig does not parse';
const refused = { code: 'Rejected', headers: { authorization: 'Bearer abc' }, body: 'password' };
const QUOTING = new SyntaxError('Unexpected token s in "token: s3cret"');
const LINES = new Error('Bad indentation:\n\n    token: s3cret\n    ^');
const notParsed = (cause: Error) => new ClusterError('BadKubeconfig', NOT_PARSED, { cause });
const parts = [new Error('refused ::1'), new Error('refused 127.0.0.1')];
const together = Object.assign(new AggregateError(parts, 'as Node throws it'), { message: '' });
test.each<[string, unknown, string, string]>([
  [
    'code, message and causes of an expected error',
    new ClusterError('Unavailable', 'GET /api/v1/services failed', {
      cause: new Error('fetch failed', { cause: new Error('connect ECONNREFUSED 10.0.0.1:6443') }),
    }),
    'Unavailable',
    'GET /api/v1/services failed: fetch failed: connect ECONNREFUSED 10.0.0.1:6443',
  ],
  [
    'no cause whose message is already part of the error',
    new ClusterError('Unavailable', 'unreachable: no route to host', { cause: new Error('no route to host') }),
    'Unavailable',
    'unreachable: no route to host',
  ],
  ['no headers or body of the error', Object.assign(new Error('refused'), refused), 'Rejected', 'refused'],
  ['no text that a parser quotes', notParsed(QUOTING), 'BadKubeconfig', `${NOT_PARSED}: SyntaxError`],
  ['no lines below the message of a parser', notParsed(LINES), 'BadKubeconfig', `${NOT_PARSED}: Bad indentation:`],
  ['the messages of the errors in an aggregate error', together, 'AggregateError', 'refused ::1, refused 127.0.0.1'],
  ['only the type of a thrown text', 's3cret', 'Unexpected', 'something that is not an error was thrown: string'],
])('the description of an error contains %s', (_, error, code, message) => {
  expect(describeError(error)).toEqual({ code, message });
  expect(errorSentence(error)).toBe(`${code}: ${message}`);
});

test('the stack trace of an unexpected error contains positions in the code and not the message of the error', () => {
  const stack = stackOfFault(new TypeError('x is not a function'));
  expect(stack?.[0]).toMatch(/^at .*telemetry\.test\.ts/);
});

test('an expected error has no stack trace', () => {
  expect(stackOfFault(new ClusterError('Forbidden', 'no'))).toBeUndefined();
});
