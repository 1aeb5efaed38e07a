import { DynamoDBServiceException } from '@aws-sdk/client-dynamodb';
import { expect, test } from '@jest/globals';
import { regionOf, type TableAction, tableErrorOf } from '../../lib/table/dynamodb/dynamodb-errors.ts';
import { createDynamoClient } from '../../lib/table/dynamodb/dynamodb-table.ts';
import { TableError } from '../../lib/table/key-value-table.ts';

interface Answer {
  readonly status?: number;
  readonly attempts?: number;
  readonly fault?: 'client' | 'server';
  readonly message?: string;
}

function answered(name: string, { status, attempts = 2, fault = 'client', message = 'no' }: Answer = {}): Error {
  const $metadata = { attempts, ...(status !== undefined && { httpStatusCode: status }) };
  return new DynamoDBServiceException({ name, $fault: fault, $metadata, message });
}

const unsent = Object.assign(new Error('no route'), { $metadata: { attempts: 3 } });
const refusedConnection = Object.assign(new Error('no route'), { code: 'ECONNREFUSED', $metadata: { attempts: 3 } });
const notJson = Object.assign(new SyntaxError('<'), { $metadata: { attempts: 1, httpStatusCode: 404 } });
const WHAT = 'dynamodb:PutItem on table "t" in region r';

interface Call {
  readonly action?: TableAction;
  readonly deadline?: AbortSignal;
}

const errorOf = (error: unknown, { action = 'dynamodb:PutItem', ...call }: Call = {}) =>
  tableErrorOf(error, { action, tableName: 't', region: 'r', ...call });

const MAY_HAVE_HAPPENED = 'it may or may not have happened; ';
const THROTTLED = `: ${MAY_HAVE_HAPPENED}try again in a moment; if this continues, raise the capacity limits of the table or of the account.`;
const READ_AGAIN = `: ${MAY_HAVE_HAPPENED}try again.`;
const VPC =
  ' Check the network and the region. In a VPC, DynamoDB is reached through a gateway endpoint for com.amazonaws.r.dynamodb in the route tables of the subnets.';
const DENIED = ' was denied: allow dynamodb:PutItem on this table to the role or user that runs this.';
const TOO_LARGE = ' was refused: the item is larger than the 400 KB that the table takes.';
const INVALID =
  ' was refused as invalid: correct the name, or the keys of the table, which must be "cluster" (partition) and "key" (sort), both text.';
const refusal = (name: string, message?: string) => answered(name, { status: 400, ...(message && { message }) });
const internal = answered('Internal', { status: 500, fault: 'server' });
const failedWith = (name: string, attempts: number | string, advice: string) =>
  ` failed (${name}, attempts: ${attempts})${advice}`;
const unsentThrottling = Object.assign(new Error('no'), { name: 'ThrottlingException' });

test.each<[string, unknown, string, string]>([
  ['a denied action', refusal('AccessDeniedException'), 'AccessDenied', DENIED],
  ['an item that is too large', refusal('ValidationException', 'Item size is over'), 'ItemTooLarge', TOO_LARGE],
  ['a table with other keys', refusal('ValidationException'), 'Unexpected', INVALID],
  ['a refusal about a size', refusal('Other', 'Item size'), 'Unexpected', ' failed with Other; see the cause.'],
  ['an error before the request was sent', new Error('a defect'), 'Unexpected', ' failed with Error; see the cause.'],
  ['a thrown value that is not an error', null, 'Unexpected', ' failed with unknown error; see the cause.'],
  ['a throttling error', unsentThrottling, 'Throttled', failedWith('ThrottlingException', 'unknown', THROTTLED)],
  [
    'an answer of 500 to a fault of ours',
    answered('Other', { status: 500 }),
    'Unavailable',
    failedWith('Other', 2, READ_AGAIN),
  ],
  ['an answer of 500', internal, 'Unavailable', failedWith('Internal', 2, READ_AGAIN)],
  ['an answer that is no JSON', notJson, 'Unavailable', ` failed (SyntaxError, attempts: 1)${READ_AGAIN}${VPC}`],
  ['no answer', refusedConnection, 'Unavailable', ` failed (ECONNREFUSED, attempts: 3)${READ_AGAIN}${VPC}`],
])('a call to the table fails with a code and a message for %s', (_, error, code, message) => {
  expect(errorOf(error)).toMatchObject({ code, message: `${WHAT}${message}`, cause: error });
});

test('the error of a call to a missing table contains the name of the table and its region', () => {
  const error = refusal('ResourceNotFoundException');
  const message =
    'Table "t" was not found in region r (dynamodb:PutItem): deploy the stack that creates it, or correct the name or the region.';
  expect(errorOf(error)).toMatchObject({ code: 'TableMissing', message, cause: error });
  const call = { action: 'dynamodb:GetItem', tableName: 't', region: 'r', endpoint: 'http://scylla:8000' } as const;
  expect(tableErrorOf(error, call).message).toContain('create it (docs/installing.md)');
});

test.each([
  ...['ProvisionedThroughputExceededException', 'ThrottlingException', 'RequestLimitExceeded'],
  ...['LimitExceededException', 'TooManyRequests'],
])('the error %s of a call to the table has the code Throttled', (name) => {
  const error = answered(name, { status: name === 'TooManyRequests' ? 429 : 400 });
  const message = `${WHAT}${failedWith(name, 2, THROTTLED)}`;
  expect(errorOf(error)).toMatchObject({ code: 'Throttled', message });
});

test.each([
  ...['CredentialsProviderError', 'ExpiredTokenException', 'IncompleteSignatureException'],
  ...['InvalidSignatureException', 'MissingAuthenticationTokenException', 'TokenProviderError'],
  'UnrecognizedClientException',
])('the error %s of a call to the table contains no part of the signature', (name) => {
  const error = errorOf(refusal(name, 'signature'));
  const message = `${WHAT} could not be authenticated (${name}): give this process valid AWS credentials.`;
  expect(error).toMatchObject({ code: 'AccessDenied', message });
  expect(error.cause).toBeUndefined();
});

test.each<[TableAction, string, string]>([
  ['dynamodb:GetItem', 'mentions no write', ''],
  ['dynamodb:BatchGetItem', 'mentions no write', ''],
  ['dynamodb:Query', 'mentions no write', ''],
  ['dynamodb:PutItem', 'states that the write might have happened', MAY_HAVE_HAPPENED],
])('the error of a failed %s %s', (action, _, outcome) => {
  expect(errorOf(answered('Busy', { status: 503, fault: 'server' }), { action }).message).toBe(
    `${action} on table "t" in region r failed (Busy, attempts: 2): ${outcome}try again.`,
  );
});

test('the error of a write that was aborted mentions the deadline and states that the write might have happened', () => {
  const deadline = AbortSignal.abort();
  const message = `${WHAT} was aborted at its deadline: ${MAY_HAVE_HAPPENED}try again.`;
  const error = answered('Busy', { status: 503, fault: 'server' });
  expect(errorOf(error, { deadline })).toMatchObject({ code: 'DeadlineExceeded', message });
});

test('the error of a call that the table refused has the code of the refusal, even if the deadline has expired', () => {
  const deadline = AbortSignal.abort();
  expect(errorOf(answered('Other', { status: 400 }), { deadline }).code).toBe('Unexpected');
});

test('the error of a call without a region explains how to set the region', () => {
  const call = { action: 'dynamodb:GetItem', tableName: 't', region: undefined } as const;
  expect(tableErrorOf(unsent, call).message).toBe('dynamodb:GetItem failed: no AWS region is set; set AWS_REGION.');
});

test('the error of a call to an endpoint that does not answer has the URL of the endpoint, and no advice about a VPC', () => {
  const call = { action: 'dynamodb:PutItem', tableName: 't', region: 'r', endpoint: 'http://scylla:8000' } as const;
  const { message } = tableErrorOf(refusedConnection, call);
  expect(message).toMatch(
    /Check that http:\/\/scylla:8000 is the endpoint of the table and can be reached from here\.$/,
  );
  expect(message).not.toContain('VPC');
});

test('tableErrorOf returns a TableError unchanged', () => {
  const error = new TableError('Corrupt', 'x');
  expect(errorOf(error)).toBe(error);
});

test('regionOf returns undefined if the client has no region', async () => {
  const clientOf = (region: () => Promise<string>) => ({ config: { region } }) as Parameters<typeof regionOf>[0];
  expect(await regionOf(clientOf(async () => 'r'))).toBe('r');
  expect(await regionOf(clientOf(() => Promise.reject(new Error('Region is missing'))))).toBeUndefined();
});

const randomly = Math.random;

test('createDynamoClient creates a client with the given profile and the documented timeouts', async () => {
  const { profile, requestHandler } = createDynamoClient({ region: 'r', profile: 'p' }).config;
  expect(profile).toBe('p');
  expect(await Reflect.get(requestHandler, 'configProvider')).toMatchObject({
    ...{ connectionTimeout: 500, requestTimeout: 1500, socketTimeout: 1500 },
    throwOnRequestTimeout: true,
  });
});

test('the maximum wait of a client doubles after each failed attempt, up to a second', async () => {
  const strategy = await createDynamoClient({ region: 'r' }).config.retryStrategy();
  const backoff = Reflect.get(strategy, 'retryBackoffStrategy');
  const waits = () => [0, 1, 2, 9].map((attempt) => backoff.computeNextBackoffDelay(attempt));
  try {
    Math.random = () => 1;
    expect(waits()).toEqual([50, 100, 200, 1000]);
    backoff.setDelayBase(400);
    expect(waits()).toEqual([400, 800, 1000, 1000]);
    Math.random = () => 0.5;
    expect(waits()).toEqual([200, 400, 500, 500]);
  } finally {
    Math.random = randomly;
  }
});
