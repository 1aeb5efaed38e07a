#!/usr/bin/env bash
# moto 5.2.5 answers false for begins_with with binary values. In DynamoDB the function takes strings and binary values (API reference, BEGINS_WITH),
# so that a conditional write on a prefix of bytes succeeds there.
# Seen on 2026-11-28 with Python 3.11 and boto3 as moto requires it:
#   text: written
#   binary: condition failed
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
        KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    for name, value, prefix in (("text", {"S": "ab"}, {"S": "a"}), ("binary", {"B": b"ab"}, {"B": b"a"})):
        item = {"k": {"S": name}, "v": value}
        client.put_item(TableName="table", Item=item)
        try:
            client.put_item(
                TableName="table", Item=item, ConditionExpression="begins_with(v, :p)", ExpressionAttributeValues={":p": prefix}
            )
            print(f"{name}: written")
        except client.exceptions.ConditionalCheckFailedException:
            print(f"{name}: condition failed")
PY
env/bin/python run.py | tee seen
diff - seen <<'SEEN'
text: written
binary: condition failed
SEEN
