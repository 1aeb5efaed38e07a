#!/usr/bin/env bash
# ministack 1.5.33 returns any number of bytes for one BatchGetItem and leaves no UnprocessedKeys. DynamoDB returns at most 16 MB (API reference of
# BatchGetItem), and the other keys to ask for again. A program that ignores them loses items with DynamoDB, and none in its tests here.
# Seen on 2026-11-29 with Python 3.11 and boto3 1.43.106, where DynamoDB returns at most 41 of these items of 400,000 bytes:
#   returned: 45, unprocessed: 0
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
    keys = [{"k": {"N": str(number)}} for number in range(45)]
    for key in keys:
        client.put_item(TableName="table", Item={**key, "v": {"S": "x" * 400_000}})
    answer = client.batch_get_item(RequestItems={"table": {"Keys": keys}})
    unprocessed = answer["UnprocessedKeys"].get("table", {"Keys": []})["Keys"]
    print(f"returned: {len(answer['Responses']['table'])}, unprocessed: {len(unprocessed)}")
finally:
    server.terminate()
    server.wait()
PY
env/bin/python run.py | tee seen
diff - seen <<'SEEN'
returned: 45, unprocessed: 0
SEEN
