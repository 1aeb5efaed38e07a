import { describe, expect, test } from '@jest/globals';
import { consoleBlocks, fencedBlocks, showsThat } from '../support/console-blocks.ts';
import { isGranted, notGranted, type Statement } from '../support/emulator-policy.ts';

const TABLE = 'arn:aws:dynamodb:us-east-1:123456789012:table/t';
const SECRETS = 'arn:aws:secretsmanager:us-east-1:123456789012:secret:';

describe('the check of policies', () => {
  const allow = (Action: Statement['Action'], Resource: Statement['Resource']): Statement => ({
    Effect: 'Allow',
    Action,
    Resource,
  });

  test.each<[string, boolean, string, string, Statement[]]>([
    ['a policy grants what it names', true, 'dynamodb:GetItem', TABLE, [allow('dynamodb:GetItem', TABLE)]],
    ['a policy grants by pattern', true, 'dynamodb:GetItem', TABLE, [allow(['dynamodb:Get*'], '*')]],
    ['an empty policy grants nothing', false, 'dynamodb:GetItem', TABLE, []],
    ['a policy grants no other action', false, 'dynamodb:Scan', TABLE, [allow('dynamodb:GetItem', TABLE)]],
    ['a policy grants no other resource', false, 'dynamodb:GetItem', `${TABLE}2`, [allow('dynamodb:GetItem', TABLE)]],
    [
      'a policy denies before it grants',
      false,
      'dynamodb:GetItem',
      TABLE,
      [allow('*', '*'), { Effect: 'Deny', Action: 'dynamodb:*', Resource: '*' }],
    ],
    [
      'a policy grants a secret by its name, although the ARN has another end',
      true,
      'secretsmanager:GetSecretValue',
      `${SECRETS}kbc/prod`,
      [allow('secretsmanager:GetSecretValue', `${SECRETS}kbc/*`)],
    ],
    [
      'a policy grants no secret of another prefix',
      false,
      'secretsmanager:GetSecretValue',
      `${SECRETS}other/prod`,
      [allow('secretsmanager:GetSecretValue', `${SECRETS}kbc/*`)],
    ],
    ['no policy has to grant an action that IAM allows to every identity', true, 'sts:GetCallerIdentity', '*', []],
  ])('isGranted follows the rule that %s', (_, granted, action, resource, statements) => {
    expect(isGranted({ action, resource }, statements)).toBe(granted);
  });

  test('notGranted reports each denied call only once, with its caller and action', () => {
    const call = { caller: 'doctor', action: 'dynamodb:Scan', resource: TABLE };
    expect(notGranted([call, call], [allow('dynamodb:GetItem', '*')])).toEqual([
      `doctor called dynamodb:Scan on ${TABLE}`,
    ]);
  });
});

describe('the comparison of printed output with a page', () => {
  test.each<[string, boolean, string, string[]]>([
    ['a page shows printed lines in their order', true, 'a\nb\nc', ['a', 'c']],
    ['a page with another order of lines is wrong', false, 'a\nb', ['b', 'a']],
    ['a page with half a line is wrong', false, 'deployed well', ['deployed']],
    ['a number on the page matches any other number', true, 'in 31.5 s', ['in 7 s']],
    ['three dots of a page match any text', true, 'table kbc-dev is there', ['table ... is there', '...']],
    ['a page with a line that was not printed is wrong', false, '', ['deployed']],
  ])('showsThat follows the rule that %s', (_, said, printed, expected) => {
    expect(showsThat(printed, expected)).toBe(said);
  });
});

test("consoleBlocks returns the commands of a page's console blocks, each with its output", () => {
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

  expect(fencedBlocks(page).map(({ language }) => language)).toEqual(['console', 'text']);
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
