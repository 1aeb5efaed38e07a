#!/usr/bin/env bash
# ValidateTemplate of moto 5.2.5 refuses a template for which cfn-lint has only a warning, such as a condition that is always false or a DependsOn that
# Ref implies (W3005). CloudFormation accepts both: it checks the syntax (API reference of ValidateTemplate). Tools that validate before they deploy,
# such as Serverless Framework, whose templates have such a DependsOn, cannot deploy to moto. CreateStack of moto takes the same template.
# Seen on 2026-11-29 with Python 3.11, boto3 as moto requires it and cfn-lint 1.58.0:
#   validate: ValidationError
#   create: CREATE_COMPLETE
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

queue = {"Type": "AWS::SQS::Queue"}
name = {"QueueName": {"Fn::Sub": "${First.QueueName}-next"}}
template = json.dumps({"Resources": {"First": queue, "Second": {**queue, "DependsOn": "First", "Properties": name}}})
with mock_aws():
    client = boto3.client("cloudformation", "eu-west-1", aws_access_key_id="a", aws_secret_access_key="b")
    try:
        client.validate_template(TemplateBody=template)
    except client.exceptions.ClientError as error:
        print(f"validate: {error.response['Error']['Code']}")
    client.create_stack(StackName="stack", TemplateBody=template)
    print(f"create: {client.describe_stacks(StackName='stack')['Stacks'][0]['StackStatus']}")
PY
env/bin/python run.py | tee seen
diff - seen <<'SEEN'
validate: ValidationError
create: CREATE_COMPLETE
SEEN
