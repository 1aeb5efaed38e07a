#!/usr/bin/env bash
# moto 5.2.5 returns no LastEvaluatedKey if the Limit is exactly the number of items. DynamoDB stops at the limit and returns the last key,
# so that the last page can be empty (developer guide, "Paginating table query results"). Code that takes the key for "there is more" passes
# its tests with moto only.
# Seen on 2026-11-28 with Python 3.11 and boto3 as moto requires it, where DynamoDB returns a key in the first two cases:
#   limit 1: 1 items, last key: {'S': 'a'}
#   limit 2: 2 items, last key: None
#   limit 3: 2 items, last key: None
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'moto[dynamodb]==5.2.5'
cat >run.py <<'PY'
import boto3
from moto import mock_aws

with mock_aws():
    client = boto3.client("dynamodb", "eu-west-1", aws_access_key_id="a", aws_secret_access_key="b")
    client.create_table(
        TableName="table",
        KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}, {"AttributeName": "s", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}, {"AttributeName": "s", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    for s in "ab":
        client.put_item(TableName="table", Item={"k": {"S": "a"}, "s": {"S": s}})
    for limit in (1, 2, 3):
        page = client.query(
            TableName="table", Limit=limit, KeyConditionExpression="k = :k", ExpressionAttributeValues={":k": {"S": "a"}}
        )
        print(f"limit {limit}: {page['Count']} items, last key: {page.get('LastEvaluatedKey', {}).get('s')}")
PY
env/bin/python run.py | tee seen
diff - seen <<'SEEN'
limit 1: 1 items, last key: {'S': 'a'}
limit 2: 2 items, last key: None
limit 3: 2 items, last key: None
SEEN
