#!/usr/bin/env bash
# ministack 1.5.33 finds an item only if a number in its key is spelled as DynamoDB stores it. DynamoDB takes 1 and 1.0 for one number (developer
# guide, "Data types"), and PutItem of ministack does, too: it replaces the item that GetItem and a condition on it do not find.
# Seen on 2026-11-28 with Python 3.11 and boto3 1.43.106, where DynamoDB finds the item each time:
#   read 1: found
#   read 1.0: not found
#   delete 1.0: condition failed
#   items after the second write: 1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check ministack==1.5.33 boto3==1.43.106
cat >run.py <<'PY'
import os
import socket
import subprocess
import time

import boto3

with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
environment = {**os.environ, "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port)}
server = subprocess.Popen(["env/bin/ministack"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
try:
    while socket.socket().connect_ex(("127.0.0.1", port)) and server.poll() is None:
        time.sleep(0.1)
    client = boto3.client(
        "dynamodb", "eu-west-1", endpoint_url=f"http://127.0.0.1:{port}", aws_access_key_id="a", aws_secret_access_key="b"
    )
    client.create_table(
        TableName="table",
        KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "N"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.put_item(TableName="table", Item={"k": {"N": "1"}, "v": {"S": "first"}})
    for number in ("1", "1.0"):
        item = client.get_item(TableName="table", Key={"k": {"N": number}}, ConsistentRead=True).get("Item")
        print(f"read {number}: {'found' if item else 'not found'}")
    try:
        client.delete_item(TableName="table", Key={"k": {"N": "1.0"}}, ConditionExpression="attribute_exists(k)")
        print("delete 1.0: deleted")
    except client.exceptions.ConditionalCheckFailedException:
        print("delete 1.0: condition failed")
    client.put_item(TableName="table", Item={"k": {"N": "1.0"}, "v": {"S": "second"}})
    print(f"items after the second write: {client.scan(TableName='table')['Count']}")
finally:
    server.terminate()
    server.wait()
PY
env/bin/python run.py | tee seen
diff - seen <<'SEEN'
read 1: found
read 1.0: not found
delete 1.0: condition failed
items after the second write: 1
SEEN
