#!/usr/bin/env bash
# moto 5.2.5 leaves an attribute out of ReturnValues=UPDATED_NEW if its value stays the same. DynamoDB returns every attribute that the update sets
# (API reference of UpdateItem), so that a caller who reads the answer finds the attribute there.
# Seen on 2026-11-28 with Python 3.11 and boto3 as moto requires it:
#   set to 1: {}
#   set to 2: {'v': {'N': '2'}}
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
    client.put_item(TableName="table", Item={"k": {"S": "a"}, "v": {"N": "1"}})
    for value in ("1", "2"):
        answer = client.update_item(
            TableName="table",
            Key={"k": {"S": "a"}},
            UpdateExpression="SET v = :v",
            ExpressionAttributeValues={":v": {"N": value}},
            ReturnValues="UPDATED_NEW",
        )
        print(f"set to {value}: {answer['Attributes']}")
PY
env/bin/python run.py | tee seen
diff - seen <<'SEEN'
set to 1: {}
set to 2: {'v': {'N': '2'}}
SEEN
