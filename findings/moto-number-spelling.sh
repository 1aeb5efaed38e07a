#!/usr/bin/env bash
# moto 5.2.5 returns a number as the caller spelled it, compares the members of a number set by spelling, and stores 39 digits. DynamoDB trims zeros
# (developer guide, "Data types"), takes 1 and 1.0 for one member, and refuses more than 38 digits. A comparison with a text that was written, or a
# set that counts, is thus right in a test with moto only.
# Seen on 2026-11-29 with Python 3.11 and boto3 as moto requires it, where DynamoDB stores 1, 100 and 0.1:
#   1.0 is 1.0
#   1e2 is 1e2
#   0.10 is 0.10
#   39 digits are stored
#   set 1, plus 1.0: ['1', '1.0']
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
    def stored(value):
        client.put_item(TableName="table", Item={"k": {"S": "a"}, "v": value})
        return client.get_item(TableName="table", Key={"k": {"S": "a"}})["Item"]["v"]

    for number in ("1.0", "1e2", "0.10"):
        print(f"{number} is {stored({'N': number})['N']}")
    digits = len(stored({"N": "1" * 39})["N"])
    print(f"{digits} digits are stored")
    stored({"NS": ["1"]})
    answer = client.update_item(
        TableName="table",
        Key={"k": {"S": "a"}},
        UpdateExpression="ADD v :v",
        ExpressionAttributeValues={":v": {"NS": ["1.0"]}},
        ReturnValues="ALL_NEW",
    )
    print(f"set 1, plus 1.0: {sorted(answer['Attributes']['v']['NS'])}")
PY
env/bin/python run.py | tee seen
diff - seen <<'SEEN'
1.0 is 1.0
1e2 is 1e2
0.10 is 0.10
39 digits are stored
set 1, plus 1.0: ['1', '1.0']
SEEN
