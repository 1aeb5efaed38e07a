"""Allocates a cluster IP and two node ports for a Service that does not exist yet.

    python allocate.py FUNCTION CLUSTER REQUEST_ID
"""

import json
import sys

import boto3

function, cluster, request_id = sys.argv[1:]
items = [{"range": "serviceips", "next": True}, {"range": "servicenodeports", "next": True, "count": 2}]
request = {"requestId": request_id, "cluster": cluster, "operation": "allocate", "items": items}

reply = boto3.client("lambda").invoke(FunctionName=function, Payload=json.dumps(request))
answer = json.load(reply["Payload"])

if "FunctionError" in reply:  # Run it again with the same id: it resumes.
    sys.exit(answer["errorMessage"])
if answer["outcome"] == "refused":
    sys.exit(f"{answer['error']['code']}: {answer['error']['message']}")
for item in answer["items"]:
    print(item["range"], item["value"])
