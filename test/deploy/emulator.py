"""Serves AWS on a loopback port: moto_server -p PORT, with these changes.

ValidateTemplate of moto lets cfn-lint judge, and takes its warnings for errors: one of them is about a DependsOn that the
Serverless Framework writes wherever a function has a role. cfn-lint has a gate of its own.

AWS::NoValue takes an entry out of a list, as it does in CloudFormation; moto leaves a null there.

A role's policy that came from a template is read back as JSON; moto prints it as Python does.

Conditions and parameters of a template are resolved before moto compares templates: in an update it does not know them.
The attribute of a resource that moto passes over is its name. A reference to a layer is its ARN, and an update makes a new
version of the layer.

An executed change set changes the parameters, tags and outputs of its stack; moto changes only its resources.

A rule with a schedule and no pattern matches no event; moto would invoke its targets.

A version of a function keeps the code and settings that the function had, is made after an update of the function, and again
when its description changes. As in Lambda, one without a change fails. An alias is a resource of CloudFormation.

A conditional write of DynamoDB is one step; moto answers in threads, and lets another write in between condition and write.
"""

import hashlib
import json
import sys
import threading

from moto.awslambda.models import LambdaVersion, LayerVersion
from moto.awslambda.utils import get_backend
from moto.cloudformation import models, parsing
from moto.core.common_models import CloudFormationModel
from moto.dynamodb.models import DynamoDBBackend
from moto.events.models import EventPattern
from moto.iam.models import Role
from moto.server import main

clean_json = parsing.clean_json
put_policy = Role.put_policy


def clean_json_without_no_value(value, resources):
    cleaned = clean_json(value, resources)
    return [entry for entry in cleaned if entry is not None] if isinstance(value, list) else cleaned


def put_policy_as_json(role, name, document):
    put_policy(role, name, document if isinstance(document, str) else json.dumps(document, default=str))


matches_event = EventPattern.matches_event


def matches_event_by_pattern(pattern, event):
    return bool(pattern.get_pattern()) and matches_event(pattern, event)


one_write_at_a_time = threading.RLock()


def as_one_step(write):
    def written(*args, **kwargs):
        with one_write_at_a_time:
            return write(*args, **kwargs)

    return written


for name in ("put_item", "update_item", "delete_item"):
    setattr(DynamoDBBackend, name, as_one_step(getattr(DynamoDBBackend, name)))


def resolved(template, parameters):
    """The template with its conditions decided and its parameters replaced by their values."""
    declared = template.get("Parameters", {})
    values = {name: declared[name].get("Default") for name in declared} | {
        name: value for name, value in (parameters or {}).items() if name in declared
    }

    def holds(condition):
        ((operator, operand),) = condition.items()
        if operator == "Condition":
            return holds(template["Conditions"][operand])
        if operator == "Fn::Equals":
            one, other = (resolve(value) for value in operand)
            return one == other
        if operator == "Fn::Not":
            return not holds(operand[0])
        return (all if operator == "Fn::And" else any)(holds(one) for one in operand)

    def resolve(value):
        if isinstance(value, list):
            return [resolve(one) for one in value]
        if not isinstance(value, dict):
            return value
        if value.get("Ref") in values:
            return values[value["Ref"]]
        if "Fn::If" in value:
            name, then, otherwise = value["Fn::If"]
            return resolve(then if holds({"Condition": name}) else otherwise)
        resource, attribute = value.get("Fn::GetAtt", (None, None))
        if resource and parsing.resource_class_from_type(template["Resources"][resource]["Type"]) is None:
            return f"{resource}.{attribute}"
        if isinstance(value.get("Fn::Sub"), str):
            text = value["Fn::Sub"]
            for name in values:
                text = text.replace("${" + name + "}", str(values[name]))
            return {"Fn::Sub": text}
        return {name: resolve(one) for name, one in value.items()}

    def present(section):
        parts = template.get(section, {}).items()
        return {
            name: resolve({key: value for key, value in part.items() if key != "Condition"})
            for name, part in parts
            if "Condition" not in part or holds({"Condition": part["Condition"]})
        }

    kept = {name: part for name, part in template.items() if name not in ("Conditions", "Rules")}
    return with_replaced_versions({**kept, "Resources": present("Resources"), "Outputs": present("Outputs")})


def with_replaced_versions(template):
    """Each version has a name that changes with its description."""
    text = json.dumps(template)
    for name, resource in template["Resources"].items():
        if resource["Type"] == "AWS::Lambda::Version":
            digest = hashlib.sha256(json.dumps(resource["Properties"]).encode()).hexdigest()
            text = text.replace(f'"{name}"', f'"{name}x{digest[:8]}"')
    return json.loads(text)


def published(function):
    layers = [layer["Arn"] for layer in function.layers]
    settings = (function.handler, function.memory_size, function.timeout, function.role, function.vpc_config)
    return json.dumps([function.code_sha_256, function.environment_vars, layers, settings], default=str)


def publish_version(cls, resource_name, cloudformation_json, account_id, region_name, **kwargs):
    backend = get_backend(account_id, region_name)
    name = cloudformation_json["Properties"]["FunctionName"]
    function = backend.get_function(name)
    *_, last = backend.list_versions_by_function(name)
    if str(last.version) != "$LATEST" and published(last) == published(function):
        raise ValueError(f"A version for this Lambda function exists ( {last.version} ).")
    function.code_or_config_updated = True
    version = backend.publish_version(name)
    version.code = dict(version.code)
    return cls({"Version": version.version})


def replace_layer(cls, original_resource, new_resource_name, cloudformation_json, account_id, region_name):
    return cls.create_from_cloudformation_json(new_resource_name, cloudformation_json, account_id, region_name)


class Alias(CloudFormationModel):
    # moto derives the service of a model from it.
    __module__ = LambdaVersion.__module__

    def __init__(self, arn):
        self.physical_resource_id = arn

    @staticmethod
    def cloudformation_name_type():
        return ""

    @staticmethod
    def cloudformation_type():
        return "AWS::Lambda::Alias"

    @classmethod
    def create_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name, **kwargs):
        alias = cls.put("create_alias", cloudformation_json["Properties"], account_id, region_name)
        return cls(alias.arn)

    @classmethod
    def update_from_cloudformation_json(
        cls, original_resource, new_resource_name, cloudformation_json, account_id, region_name
    ):
        cls.put("update_alias", cloudformation_json["Properties"], account_id, region_name)
        return original_resource

    @staticmethod
    def put(operation, properties, account_id, region_name):
        write = getattr(get_backend(account_id, region_name), operation)
        return write(properties["Name"], properties["FunctionName"], properties["FunctionVersion"], "", None)

    def delete(self, account_id, region_name):
        pass


create_resources = parsing.ResourceMap.create
update_resources = parsing.ResourceMap.update
init_outputs = parsing.OutputMap.__init__
apply_change_set = models.ChangeSet.apply


def create_resources_resolved(self, template):
    create_resources(self, resolved(template, self.input_parameters))


def update_resources_resolved(self, template, parameters=None):
    whole = resolved(template, parameters or self.input_parameters)

    def is_of_version(resource):
        return resource["Type"] in ("AWS::Lambda::Version", "AWS::Lambda::Alias", "AWS::Lambda::Permission")

    unversioned = {name: one for name, one in whole["Resources"].items() if not is_of_version(one)}
    before = {name: one for name, one in self._resource_json_map.items() if is_of_version(one)}
    update_resources(self, {**whole, "Resources": {**unversioned, **before}}, parameters)
    update_resources(self, whole, parameters)


def init_outputs_resolved(self, resources, template, stack_id):
    init_outputs(self, resources, resolved(template, resources.input_parameters) if template else template, stack_id)


def apply_change_set_with_outputs(self):
    apply_change_set(self)
    self.stack.template_dict = self.template_dict
    self.stack.parameters = self.parameters
    self.stack.tags = self.tags or {}
    self.stack.output_map = self.stack._create_output_map()


LambdaVersion.create_from_cloudformation_json = classmethod(publish_version)
LambdaVersion.has_cfn_attr = classmethod(lambda cls, attribute: attribute == "Version")
LambdaVersion.get_cfn_attribute = lambda version, attribute: str(version.version)
LambdaVersion.delete = lambda version, account_id, region_name: None
parsing.ResourceMap.create = create_resources_resolved
parsing.ResourceMap.update = update_resources_resolved
parsing.OutputMap.__init__ = init_outputs_resolved
models.ChangeSet.apply = apply_change_set_with_outputs
parsing.clean_json = clean_json_without_no_value
Role.put_policy = put_policy_as_json
EventPattern.matches_event = matches_event_by_pattern
LayerVersion.physical_resource_id = property(lambda layer: layer.arn)
LayerVersion.update_from_cloudformation_json = classmethod(replace_layer)
models.validate_template_cfn_lint = lambda template: []

main(sys.argv[1:])
