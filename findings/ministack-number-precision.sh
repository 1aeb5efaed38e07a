#!/usr/bin/env bash
# ministack 1.5.33 adds with 28 digits: a number of 38 digits plus 1 loses its last ten. DynamoDB stores and adds numbers with up to 38 digits of
# precision (developer guide, "Data types"), so that a counter or a sum in an update expression is exact there.
# Seen on 2026-11-28 with Python 3.11 and boto3 1.43.106, where DynamoDB answers 12345678901234567890123456789012345679:
#   ADD: 12345678901234567890123456790000000000
#   SET: 12345678901234567890123456790000000000
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
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    one, large = {":n": {"N": "1"}}, {"N": "12345678901234567890123456789012345678"}
    for expression in ("ADD n :n", "SET n = n + :n"):
        client.put_item(TableName="table", Item={"k": {"S": "a"}, "n": large})
        answer = client.update_item(
            TableName="table",
            Key={"k": {"S": "a"}},
            UpdateExpression=expression,
            ExpressionAttributeValues=one,
            ReturnValues="ALL_NEW",
        )
        print(f"{expression[:3]}: {answer['Attributes']['n']['N']}")
finally:
    server.terminate()
    server.wait()
PY
env/bin/python run.py | tee seen
diff - seen <<'SEEN'
ADD: 12345678901234567890123456790000000000
SET: 12345678901234567890123456790000000000
SEEN
