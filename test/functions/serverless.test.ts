import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { LOOPS } from '../../lib/cluster/cluster-spec.ts';
import { SCHEDULE_SECONDS } from '../../lib/cluster/schedules.ts';
import { CLOSING_MS, LISTING_MS, PASS_BUDGET_MS } from '../../lib/dispatch/budgets.ts';

const repository = path.join(import.meta.dirname, '..', '..');

interface FunctionEntry {
  readonly handler: string;
  readonly timeout: number;
  readonly maximumRetryAttempts: number;
  readonly events?: readonly { readonly schedule: string }[];
}

interface Service {
  readonly provider: {
    readonly environment: Readonly<Record<string, string>>;
    readonly iam: { readonly role: { readonly statements: readonly { readonly Action: readonly string[] }[] } };
  };
  readonly functions: Readonly<Record<string, FunctionEntry>>;
}

const service: Service = parse(read('serverless.yml'));

function read(file: string): string {
  return readFileSync(path.join(repository, file), 'utf8');
}

describe('serverless.yml', () => {
  test('deploys each file of functions/ under its own name', () => {
    const names = readdirSync(path.join(repository, 'functions')).map((file) => path.basename(file, '.ts'));
    expect(Object.keys(service.functions).sort()).toEqual(names.sort());
    for (const [name, entry] of Object.entries(service.functions))
      expect(entry.handler).toBe(`functions/${name}.handler`);
  });

  test.each(LOOPS)('invokes %s as often as its loop is due, but no more than once a minute', (loop) => {
    const minutes = Math.max(1, SCHEDULE_SECONDS[loop] / 60);
    const rate = minutes === 1 ? 'rate(1 minute)' : `rate(${minutes} minutes)`;
    expect(service.functions[loop]?.events).toEqual([{ schedule: rate }]);
  });

  test.each(LOOPS)('gives %s the time for a whole pass, and ends it before the next tick', (loop) => {
    const timeoutMs = (service.functions[loop]?.timeout ?? 0) * 1000;
    expect(timeoutMs).toBeGreaterThan(LISTING_MS + PASS_BUDGET_MS[loop] + CLOSING_MS);
    expect(timeoutMs).toBeLessThan(Math.max(60, SCHEDULE_SECONDS[loop]) * 1000);
  });

  test('retries nothing: the next tick is the retry', () => {
    for (const entry of Object.values(service.functions)) expect(entry.maximumRetryAttempts).toBe(0);
  });

  test('sets what the environment of a function needs', () => {
    expect(service.provider.environment).toMatchObject({
      TABLE_NAME: expect.any(String),
      REPORTING_INSTANCE: expect.any(String),
    });
  });

  test('allows what the table adapter does, and nothing else', () => {
    const adapter = read('lib/table/dynamodb-table.ts');
    const used = new Set(adapter.match(/dynamodb:\w+/g));
    const granted = service.provider.iam.role.statements.flatMap(({ Action }) => Action);
    expect(granted.sort()).toEqual([...used].sort());
  });
});

test('the table is keyed as the adapter reads it, and swept by ttl', () => {
  expect(parse(read('deploy/table.yml'))).toMatchObject({
    Resources: {
      Table: {
        Type: 'AWS::DynamoDB::Table',
        DeletionPolicy: 'Retain',
        Properties: {
          BillingMode: 'PAY_PER_REQUEST',
          KeySchema: [
            { AttributeName: 'cluster', KeyType: 'HASH' },
            { AttributeName: 'key', KeyType: 'RANGE' },
          ],
          TimeToLiveSpecification: { AttributeName: 'ttl', Enabled: true },
        },
      },
    },
  });
});
