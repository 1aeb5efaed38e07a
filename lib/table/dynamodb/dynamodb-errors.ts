import { type DynamoDBClient, DynamoDBServiceException } from '@aws-sdk/client-dynamodb';
import { attemptsOf, httpStatusOf, isNotAuthenticated, isThrottled, nameOfError } from '../../aws/sdk.ts';
import { isRecord } from '../../util/values.ts';
import { MOST_ITEM_BYTES, TableError, type TableErrorCode } from '../key-value-table.ts';

export type TableAction = `dynamodb:${'GetItem' | 'BatchGetItem' | 'Query' | 'PutItem'}`;

export interface FailedTableCall {
  readonly action: TableAction;
  readonly tableName: string;
  readonly region: string | undefined;
  /** The endpoint, if it is not an endpoint of AWS. */
  readonly endpoint?: string | undefined;
  readonly deadline?: AbortSignal;
}

type SdkErrorCode = Exclude<TableErrorCode, 'Contended' | 'ChangedMeanwhile' | 'Corrupt' | 'SchemaTooNew'>;

export function tableErrorOf(error: unknown, call: FailedTableCall): TableError {
  if (error instanceof TableError) return error;
  const name = nameOfError(error);
  const code = codeOf(error, name, call.deadline);
  const message = messageOf(code, name, error, call);
  return isNotAuthenticated(error) ? new TableError(code, message) : new TableError(code, message, { cause: error });
}

function messageOf(code: SdkErrorCode, name: string, error: unknown, call: FailedTableCall): string {
  const { action, tableName, region, endpoint } = call;
  if (region === undefined) return `${action} failed: no AWS region is set; set AWS_REGION.`;
  const what = `${action} on table "${tableName}" in region ${region}`;
  // A code, such as `ECONNREFUSED`, is more useful than the name `Error`.
  const shown = isRecord(error) && typeof error['code'] === 'string' ? error['code'] : name;
  const failed = `${what} failed (${shown}, attempts: ${attemptsOf(error) ?? 'unknown'})`;
  const outcome = action === 'dynamodb:PutItem' ? 'it may or may not have happened; ' : '';
  switch (code) {
    case 'TableMissing':
      return `Table "${tableName}" was not found in region ${region} (${action}): ${endpoint === undefined ? 'deploy the stack that creates it' : 'create it (docs/installing.md)'}, or correct the name or the region.`;
    case 'AccessDenied':
      return isNotAuthenticated(error)
        ? `${what} could not be authenticated (${name}): give this process valid AWS credentials.`
        : `${what} was denied: allow ${action} on this table to the role or user that runs this.`;
    case 'ItemTooLarge':
      return `${what} was refused: the item is larger than the ${MOST_ITEM_BYTES / 1024} KB that the table takes.`;
    case 'Throttled':
      return `${failed}: ${outcome}try again in a moment; if this continues, raise the capacity limits of the table or of the account.`;
    case 'Unavailable': {
      // Another server than DynamoDB may answer with a text that is no JSON.
      const isFromTable = httpStatusOf(error) !== undefined && name !== 'SyntaxError';
      return `${failed}: ${outcome}try again.${isFromTable ? '' : checkNetwork(region, endpoint)}`;
    }
    case 'DeadlineExceeded':
      return `${what} was aborted at its deadline: ${outcome}try again.`;
    case 'Unexpected':
      return name === 'ValidationException'
        ? `${what} was refused as invalid: correct the name, or the keys of the table, which must be "cluster" (partition) and "key" (sort), both text.`
        : `${what} failed with ${name}; see the cause.`;
  }
}

function checkNetwork(region: string, endpoint: string | undefined): string {
  if (endpoint !== undefined)
    return ` Check that ${endpoint} is the endpoint of the table and can be reached from here.`;
  return ` Check the network and the region. In a VPC, DynamoDB is reached through a gateway endpoint for com.amazonaws.${region}.dynamodb in the route tables of the subnets.`;
}

/** Returns true if the table refused the request with a 4xx answer: then this attempt had no effect. */
export function isRefusal(error: unknown): boolean {
  return error instanceof DynamoDBServiceException && error.$fault === 'client' && (httpStatusOf(error) ?? 500) < 500;
}

function codeOf(error: unknown, name: string, deadline: AbortSignal | undefined): SdkErrorCode {
  if (name === 'ResourceNotFoundException') return 'TableMissing';
  if (name === 'AccessDeniedException' || isNotAuthenticated(error)) return 'AccessDenied';
  if (name === 'ValidationException' && /item size/i.test(String(error))) return 'ItemTooLarge';
  if (isRefusal(error) && !isThrottled(error)) return 'Unexpected';
  if (deadline?.aborted) return 'DeadlineExceeded';
  if (isThrottled(error)) return 'Throttled';
  // The SDK sets the number of attempts only if it sent the request. If the request was sent, a failure without a 4xx
  // answer is a network fault or a 5xx.
  return attemptsOf(error) === undefined ? 'Unexpected' : 'Unavailable';
}

export async function endpointOf({ config }: DynamoDBClient): Promise<string | undefined> {
  const { protocol, hostname, port } = (await config.endpoint?.()) ?? {};
  return hostname === undefined ? undefined : `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}`;
}

export function regionOf(client: DynamoDBClient): Promise<string | undefined> {
  return client.config.region().catch(() => undefined);
}
