import { describe, expect, test } from '@jest/globals';
import { consoleBlocks, fenceLanguages, showsThat } from '../support/console-blocks.ts';
import { readLines, sumOf } from '../support/emulator-logs.ts';
import { isGranted, notGranted, type Statement } from '../support/emulator-policy.ts';

const TABLE = 'arn:aws:dynamodb:us-east-1:123456789012:table/t';
const SECRETS = 'arn:aws:secretsmanager:us-east-1:123456789012:secret:';

describe('a policy', () => {
  const allow = (Action: Statement['Action'], Resource: Statement['Resource']): Statement => ({
    Effect: 'Allow',
    Action,
    Resource,
  });

  test.each<[string, boolean, string, string, Statement[]]>([
    ['grants what it names', true, 'dynamodb:GetItem', TABLE, [allow('dynamodb:GetItem', TABLE)]],
    ['grants by pattern', true, 'dynamodb:GetItem', TABLE, [allow(['dynamodb:Get*'], '*')]],
    ['grants nothing when it is empty', false, 'dynamodb:GetItem', TABLE, []],
    ['grants no other action', false, 'dynamodb:Scan', TABLE, [allow('dynamodb:GetItem', TABLE)]],
    ['grants no other resource', false, 'dynamodb:GetItem', `${TABLE}2`, [allow('dynamodb:GetItem', TABLE)]],
    [
      'denies before it grants',
      false,
      'dynamodb:GetItem',
      TABLE,
      [allow('*', '*'), { Effect: 'Deny', Action: 'dynamodb:*', Resource: '*' }],
    ],
    [
      'grants a secret by its name, which the ARN ends differently',
      true,
      'secretsmanager:GetSecretValue',
      `${SECRETS}kbc/prod`,
      [allow('secretsmanager:GetSecretValue', `${SECRETS}kbc/*`)],
    ],
    [
      'grants no secret of another prefix',
      false,
      'secretsmanager:GetSecretValue',
      `${SECRETS}other/prod`,
      [allow('secretsmanager:GetSecretValue', `${SECRETS}kbc/*`)],
    ],
    ['need not grant what everybody may do', true, 'sts:GetCallerIdentity', '*', []],
  ])('%s', (_, granted, action, resource, statements) => {
    expect(isGranted({ action, resource }, statements)).toBe(granted);
  });

  test('a missing call is reported once, with the caller and the action', () => {
    const call = { caller: 'doctor', action: 'dynamodb:Scan', resource: TABLE };
    expect(notGranted([call, call], [allow('dynamodb:GetItem', '*')])).toEqual([
      `doctor called dynamodb:Scan on ${TABLE}`,
    ]);
  });
});

describe('a line', () => {
  const metrics = (fields: object, directive: object = {}) => {
    const CloudWatchMetrics = [
      { Namespace: 'n', Dimensions: [['loop']], Metrics: [{ Name: 'passes', Unit: 'Count' }], ...directive },
    ];
    return JSON.stringify({ _aws: { Timestamp: 1, CloudWatchMetrics }, loop: 'l', passes: 2, ...fields });
  };

  test('a line with metrics is read with its dimensions', () => {
    const read = readLines([metrics({}), metrics({ passes: [1, 4], loop: 'm' })]);
    expect(read.logs).toEqual([]);
    expect(sumOf(read.metrics, 'passes')).toBe(7);
    expect(sumOf(read.metrics, 'passes', { loop: 'm' })).toBe(5);
    expect(sumOf(read.metrics, 'failures')).toBeUndefined();
  });

  test.each([
    ['that is no JSON', 'Hello', /no JSON object/],
    ['that is a list', '[]', /no JSON object/],
    ['without a level', '{"message":"m","timestamp":"t","service":"s"}', /without level/],
    ['with a metric that has no number', metrics({ passes: 'two' }), /metric passes has no number/],
    ['with a dimension that has no value', metrics({ loop: '' }), /dimension loop has no value/],
    ['with metrics but no time', metrics({ _aws: { CloudWatchMetrics: [] } }), /without a timestamp/],
    ['with too many values', metrics({ passes: Array(101).fill(1) }), /more values than CloudWatch takes/],
  ])('%s is refused', (_, line, reason) => {
    expect(() => readLines([line])).toThrow(reason);
  });
});

describe('the output of a page', () => {
  test.each<[string, boolean, string, string[]]>([
    ['is said word by word', true, 'a\nb\nc', ['a', 'c']],
    ['is not said in another order', false, 'a\nb', ['b', 'a']],
    ['is not said by half a line', false, 'deployed well', ['deployed']],
    ['is said with other numbers', true, 'in 31.5 s', ['in 7 s']],
    ['is said with anything for dots', true, 'table kbc-dev is there', ['table ... is there', '...']],
    ['is not said by nothing', false, '', ['deployed']],
  ])('%s', (_, said, printed, expected) => {
    expect(showsThat(printed, expected)).toBe(said);
  });
});

test('the commands of a page are those in its console blocks, with their output', () => {
  const page = [
    'Deploy:',
    '',
    '   ```console',
    '   $ npm run deploy -- \\',
    '       --param table=x',
    '   deployed',
    '   $ cat a',
    '   ```',
    '',
    '```text',
    '$ not run',
    '```',
  ].join('\n');

  expect(fenceLanguages(page)).toEqual(['console', 'text']);
  expect(consoleBlocks('p.md', page)).toEqual([
    {
      at: 'p.md:3',
      commands: [
        { at: 'p.md:4', command: 'npm run deploy -- \\\n    --param table=x', output: ['deployed'] },
        { at: 'p.md:7', command: 'cat a', output: [] },
      ],
    },
  ]);
});
