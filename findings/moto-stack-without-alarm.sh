#!/usr/bin/env bash
# CloudFormation of moto 5.2.5 passes over resources of types that it does not know, and the stack is complete: an AWS::CloudWatch::Alarm is not made,
# although moto has alarms, and a misspelled type is only a warning on the console of the server. CloudFormation makes the one, and refuses the
# other ("Unrecognized resource types"). A deployment to moto thus proves nothing about such resources.
# Seen on 2026-11-29 with Python 3.11 and boto3 as moto requires it:
#   stack: CREATE_COMPLETE
#   queues: 1, alarms: 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'moto[cloudformation]==5.2.5' cfn-lint==1.58.0
cat >run.py <<'PY'
import json

import boto3
from moto import mock_aws

alarm = {
    "Namespace": "n",
    "MetricName": "m",
    "Period": 60,
    "EvaluationPeriods": 1,
    "Threshold": 1,
    "Statistic": "Sum",
    "ComparisonOperator": "GreaterThanThreshold",
}
resources = {
    "Queue": {"Type": "AWS::SQS::Queue"},
    "Alarm": {"Type": "AWS::CloudWatch::Alarm", "Properties": alarm},
    "Misspelled": {"Type": "AWS::SQS::Qeue"},
}
with mock_aws():
    client = lambda service: boto3.client(service, "eu-west-1", aws_access_key_id="a", aws_secret_access_key="b")
    client("cloudformation").create_stack(StackName="stack", TemplateBody=json.dumps({"Resources": resources}))
    stack = client("cloudformation").describe_stacks(StackName="stack")["Stacks"][0]
    print(f"stack: {stack['StackStatus']}")
    queues = client("sqs").list_queues().get("QueueUrls", [])
    print(f"queues: {len(queues)}, alarms: {len(client('cloudwatch').describe_alarms()['MetricAlarms'])}")
PY
env/bin/python run.py | tee seen
diff - seen <<'SEEN'
stack: CREATE_COMPLETE
queues: 1, alarms: 0
SEEN
