#!/usr/bin/env bash
# moto 5.2.5 reports the same consumed capacity for each item: 1 unit for a write and 0.5 for a read, also for a strongly consistent one. DynamoDB counts
# a unit for each KB that is written and each 4 KB that are read, and twice as much for a consistent read as for another (developer guide, "DynamoDB
# read and write operations"). A test of costs with moto measures the number of requests.
# Seen on 2026-11-29 with Python 3.11 and boto3 as moto requires it, for an item of 9 KB, where DynamoDB counts 9, 1.5 and 3:
#   write: 1.0
#   read: 0.5
#   consistent read: 0.5
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
    counted = {"TableName": "table", "ReturnConsumedCapacity": "TOTAL"}
    units = lambda answer: answer["ConsumedCapacity"]["CapacityUnits"]
    key = {"k": {"S": "a"}}
    print(f"write: {units(client.put_item(Item={**key, 'v': {'S': 'x' * 9_200}}, **counted))}")
    print(f"read: {units(client.get_item(Key=key, **counted))}")
    print(f"consistent read: {units(client.get_item(Key=key, ConsistentRead=True, **counted))}")
PY
env/bin/python run.py | tee seen
diff - seen <<'SEEN'
write: 1.0
read: 0.5
consistent read: 0.5
SEEN
