#!/usr/bin/env bash
# moto 5.2.5 answers GetItem and DeleteItem with a key of another type as if there were no such item. DynamoDB refuses such a key ("The provided key
# element does not match the schema"). A program that writes a number where the table has a text passes each test of "not found", and no other.
# Seen on 2026-11-29 with Python 3.11 and boto3 as moto requires it, where DynamoDB answers ValidationException:
#   get: no item
#   delete: done
#   put: ValidationException
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
    client.put_item(TableName="table", Item={"k": {"S": "1"}})
    key = {"k": {"N": "1"}}
    print(f"get: {client.get_item(TableName='table', Key=key).get('Item', 'no item')}")
    client.delete_item(TableName="table", Key=key)
    print("delete: done")
    try:
        client.put_item(TableName="table", Item=key)
    except client.exceptions.ClientError as error:
        print(f"put: {error.response['Error']['Code']}")
PY
env/bin/python run.py | tee seen
diff - seen <<'SEEN'
get: no item
delete: done
put: ValidationException
SEEN
