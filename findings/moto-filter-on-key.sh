#!/usr/bin/env bash
# moto 5.2.5 accepts a FilterExpression with an attribute of the key in a Query. DynamoDB refuses it (developer guide, "Filter expressions for the Query
# operation"): the condition belongs in the KeyConditionExpression, which reads less. Such a query fails only in production.
# Seen on 2026-11-29 with Python 3.11 and boto3 as moto requires it, where DynamoDB answers ValidationException:
#   items: 1
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
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in "ks"],
        BillingMode="PAY_PER_REQUEST",
    )
    for sort in ("a", "b"):
        client.put_item(TableName="table", Item={"k": {"S": "x"}, "s": {"S": sort}})
    answer = client.query(
        TableName="table",
        KeyConditionExpression="k = :k",
        FilterExpression="s = :s",
        ExpressionAttributeValues={":k": {"S": "x"}, ":s": {"S": "b"}},
    )
    print(f"items: {answer['Count']}")
PY
env/bin/python run.py | tee seen
diff - seen <<'SEEN'
items: 1
SEEN
