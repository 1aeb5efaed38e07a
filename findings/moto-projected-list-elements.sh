#!/usr/bin/env bash
# moto 5.2.5 returns one element of a list if a ProjectionExpression names two. DynamoDB returns each element that is named, in the order of the
# list (developer guide, "Using projection expressions").
# Seen on 2026-11-28 with Python 3.11 and boto3 as moto requires it, where DynamoDB returns two elements for each expression:
#   l[0], l[2]: [{'S': 'z'}]
#   l[1], l[2]: [{'S': 'z'}]
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
    client.put_item(TableName="table", Item={"k": {"S": "a"}, "l": {"L": [{"S": "x"}, {"S": "y"}, {"S": "z"}]}})
    for expression in ("l[0], l[2]", "l[1], l[2]"):
        item = client.get_item(TableName="table", Key={"k": {"S": "a"}}, ProjectionExpression=expression)["Item"]
        print(f"{expression}: {item['l']['L']}")
PY
env/bin/python run.py | tee seen
diff - seen <<'SEEN'
l[0], l[2]: [{'S': 'z'}]
l[1], l[2]: [{'S': 'z'}]
SEEN
