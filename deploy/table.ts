import { ownArn, type Resources, ref, STACK, substitute, type Value, whether } from './cloudformation.ts';

export const TABLE_NAME = whether('OwnsTable', STACK, ref('TableName'));
export const TABLE_ARN = ownArn('dynamodb', 'table/${Table}', { Table: TABLE_NAME });

/**
 * The table: partition key "cluster", sort key "key", items swept an hour after they expired. It outlives the stack:
 * nothing else has what is in it.
 */
export const TABLE: Resources = {
  Table: {
    Type: 'AWS::DynamoDB::Table',
    Condition: 'OwnsTable',
    DeletionPolicy: 'Retain',
    UpdateReplacePolicy: 'Retain',
    Properties: {
      TableName: STACK,
      BillingMode: 'PAY_PER_REQUEST',
      DeletionProtectionEnabled: true,
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
      AttributeDefinitions: ['cluster', 'key'].map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
      KeySchema: [
        { AttributeName: 'cluster', KeyType: 'HASH' },
        { AttributeName: 'key', KeyType: 'RANGE' },
      ],
      TimeToLiveSpecification: { AttributeName: 'ttl', Enabled: true },
      SSESpecification: whether('UsesTableKey', {
        SSEEnabled: true,
        SSEType: 'KMS',
        KMSMasterKeyId: ref('TableKeyArn'),
      }),
    },
  },
};

/** What DynamoDB does with the key of a table in the name of each reader and writer. */
export const TABLE_KEY_STATEMENT: Value = {
  Effect: 'Allow',
  Action: ['kms:Decrypt', 'kms:DescribeKey', 'kms:Encrypt', 'kms:GenerateDataKey*', 'kms:ReEncrypt*'],
  Resource: [ref('TableKeyArn')],
  Condition: { StringEquals: { 'kms:ViaService': substitute('dynamodb.${AWS::Region}.amazonaws.com') } },
};
