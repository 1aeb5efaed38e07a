#!/usr/bin/env bash
# ministack 1.5.33 checks no overlap of the paths in an update expression: of two assignments to one attribute, or an assignment and its removal, the
# last one counts. DynamoDB refuses both ("Two document paths overlap with each other"), and so do moto 5.2.5 and dynalite 4.0.0. An expression
# that a program puts together passes its tests here, and fails with DynamoDB.
# Seen on 2026-11-29 with Python 3.11 and boto3 1.43.106, where DynamoDB answers ValidationException:
#   SET v = :one, v = :two: {'N': '2'}
#   SET v = :one REMOVE v: None
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
    for expression in ("SET v = :one, v = :two", "SET v = :one REMOVE v"):
        values = {name: value for name, value in ((":one", {"N": "1"}), (":two", {"N": "2"})) if name in expression}
        answer = client.update_item(
            TableName="table",
            Key={"k": {"N": "1"}},
            UpdateExpression=expression,
            ExpressionAttributeValues=values,
            ReturnValues="ALL_NEW",
        )
        print(f"{expression}: {answer['Attributes'].get('v')}")
finally:
    server.terminate()
    server.wait()
PY
env/bin/python run.py | tee seen
diff - seen <<'SEEN'
SET v = :one, v = :two: {'N': '2'}
SET v = :one REMOVE v: None
SEEN
