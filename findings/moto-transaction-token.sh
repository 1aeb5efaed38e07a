#!/usr/bin/env bash
# moto 5.2.5 ignores the ClientRequestToken of TransactWriteItems: the retry of a transaction adds a second time. DynamoDB returns success for the
# same token within ten minutes and changes nothing (API reference of TransactWriteItems). This is what makes such a retry safe.
# Seen on 2026-11-28 with Python 3.11 and boto3 as moto requires it, where DynamoDB stores 1:
#   2
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
    add = {"TableName": "table", "Key": {"k": {"S": "a"}}, "UpdateExpression": "ADD n :n", "ExpressionAttributeValues": {":n": {"N": "1"}}}
    for _ in range(2):
        client.transact_write_items(TransactItems=[{"Update": add}], ClientRequestToken="5f0c7a52-0d1c-4f0e-8f7e-2f1f6c0c9a11")
    print(client.get_item(TableName="table", Key={"k": {"S": "a"}}, ConsistentRead=True)["Item"]["n"]["N"])
PY
env/bin/python run.py | tee seen
diff - seen <<'SEEN'
2
SEEN
