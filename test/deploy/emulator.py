"""Serves AWS on a loopback port: moto_server -p PORT, with four changes.

ValidateTemplate of moto lets cfn-lint judge, and takes its warnings for errors: one of them is about a DependsOn that the
Serverless Framework writes wherever a function has a role. cfn-lint has a gate of its own.

AWS::NoValue takes an entry out of a list, as it does in CloudFormation; moto leaves a null there.

A role's policy that came from a template is read back as JSON; moto tells it as Python does.

A conditional write of DynamoDB is one step; moto answers in threads, and lets another write in between condition and write.
"""

import json
import sys
import threading

from moto.cloudformation import models, parsing
from moto.dynamodb.models import DynamoDBBackend
from moto.iam.models import Role
from moto.server import main

clean_json = parsing.clean_json
put_policy = Role.put_policy


def clean_json_without_no_value(value, resources):
    cleaned = clean_json(value, resources)
    return [entry for entry in cleaned if entry is not None] if isinstance(value, list) else cleaned


def put_policy_as_json(role, name, document):
    put_policy(role, name, document if isinstance(document, str) else json.dumps(document, default=str))


one_write_at_a_time = threading.RLock()


def as_one_step(write):
    def written(*args, **kwargs):
        with one_write_at_a_time:
            return write(*args, **kwargs)

    return written


for name in ("put_item", "update_item", "delete_item"):
    setattr(DynamoDBBackend, name, as_one_step(getattr(DynamoDBBackend, name)))

parsing.clean_json = clean_json_without_no_value
Role.put_policy = put_policy_as_json
models.validate_template_cfn_lint = lambda template: []

main(sys.argv[1:])
