import {
  type AttributeValue,
  ConditionalCheckFailedException,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
} from '@aws-sdk/client-dynamodb';

type Attributes = Record<string, AttributeValue>;

/**
 * A client whose table is in this process: gets, and the conditional puts of `dynamoDbTable`. Every `loses`th put over an
 * item loses its reply; as the SDK does, the client then makes a second attempt.
 */
export function lossyDynamo(loses: number): { readonly client: DynamoDBClient; readonly lost: () => number } {
  const items = new Map<string, Attributes>();
  let puts = 0;
  let lost = 0;
  const idOf = (attributes: Attributes = {}) => JSON.stringify([attributes['cluster']?.S, attributes['key']?.S]);

  const put = ({ Item, ExpressionAttributeValues }: PutItemCommand['input'], attempts: number): void => {
    const expected = ExpressionAttributeValues?.[':previous']?.S;
    if (items.get(idOf(Item))?.['writeId']?.S !== expected) {
      throw new ConditionalCheckFailedException({ message: 'refused', $metadata: { attempts, httpStatusCode: 400 } });
    }
    if (Item !== undefined) items.set(idOf(Item), Item);
  };

  const putLosing = async (input: PutItemCommand['input']): Promise<void> => {
    lost += 1;
    try {
      put(input, 1);
    } catch {
      // This reply is lost, too.
    }
    // Others come first.
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
    put(input, 2);
  };

  const send = async (command: unknown): Promise<object> => {
    await new Promise(setImmediate);
    if (command instanceof GetItemCommand) {
      const Item = items.get(idOf(command.input.Key));
      return Item === undefined ? {} : { Item };
    }
    if (!(command instanceof PutItemCommand)) throw new Error('not a command of this table');
    const isOver = command.input.ExpressionAttributeValues !== undefined;
    if (isOver && ++puts % loses === 0) await putLosing(command.input);
    else put(command.input, 1);
    return {};
  };

  return {
    client: { send, config: { region: async () => 'eu-test-1' } } as unknown as DynamoDBClient,
    lost: () => lost,
  };
}
