import { createDynamoClient, dynamoDbStore } from '../table/dynamodb/dynamodb-table.ts';
import { powertoolsTelemetry } from '../telemetry/powertools.ts';
import { DispatchError, startDeadline } from './deadline.ts';
import type { TableEnvironment } from './environment.ts';
import type { Handler, InvocationContext } from './invocation.ts';

export type Variables = Readonly<Record<string, string | undefined>>;

/** Returns the entry point of a function. The first invocation creates the environment, and fails if a variable is missing. */
export function deployed<Answer, Of extends TableEnvironment>(
  handler: Handler<Answer, Of>,
  environmentFrom: (variables: Variables) => Of,
): (event: unknown, context: Omit<InvocationContext, 'environment'>) => Promise<Answer> {
  let environment: Of | undefined;
  return async (event, context) => {
    environment ??= environmentFrom(process.env);
    const { awsRequestId } = context;
    return handler(event, {
      environment,
      awsRequestId,
      getRemainingTimeInMillis: () => context.getRemainingTimeInMillis(),
    });
  };
}

/** Returns the environment of a function that connects to no cluster. Its variables are in serverless.yml. */
export function tableEnvironmentFrom(variables: Variables): TableEnvironment {
  const tableName = required(variables, 'TABLE_NAME');
  const stack = required(variables, 'STACK');
  // The clock of a function's host may be wrong by minutes, so the clock of the table decides when holds and leases expire.
  const store = dynamoDbStore(createDynamoClient(), tableName, Date.now);
  return { ...store, nowMs: store.clock.nowMs, startDeadline, telemetry: powertoolsTelemetry, stack };
}

export function required(variables: Variables, name: string): string {
  const value = variables[name];
  if (value === undefined || value === '') {
    throw new DispatchError('BadEnvironment', `The environment variable ${name} is not set: serverless.yml sets it.`);
  }
  return value;
}
