#!/usr/bin/env bash
# moto 5.2.5 refuses an item of 405,100 bytes. DynamoDB stores items of up to 400 KB, which is 409,600 bytes (developer guide, "Item sizes and
# formats").
# Seen on 2026-11-28 with Python 3.11 and boto3 as moto requires it:
#   404900 bytes: stored
#   405100 bytes: ValidationException
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'moto[dynamodb]==5.2.5'
cat >run.py <<'PY'
import boto3
from botocore.exceptions import ClientError
from moto import mock_aws

with mock_aws():
    client = boto3.client("dynamodb", "eu-west-1", aws_access_key_id="a", aws_secret_access_key="b")
    client.create_table(
        TableName="table",
        KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    for size in (404_900, 405_100):
        item = {"k": {"S": "a"}, "v": {"B": bytes(size - len("kav"))}}
        try:
            client.put_item(TableName="table", Item=item)
            outcome = "stored"
        except ClientError as error:
            outcome = error.response["Error"]["Code"]
        print(f"{size} bytes: {outcome}")
PY
env/bin/python run.py | tee seen
diff - seen <<'SEEN'
404900 bytes: stored
405100 bytes: ValidationException
SEEN
