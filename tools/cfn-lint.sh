#!/usr/bin/env bash
# Lints the compiled template with cfn-lint, as it is by default and with every part that parameters can add. cfn-lint
# comes with the emulator of the deploy test, in one Python environment in the cache folder.
set -euo pipefail
cd "$(dirname "$0")/.."

PATH=$PWD/node_modules/.bin:$PATH
lint=$(bash test/deploy/install-emulator.sh)/bin/cfn-lint

packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT
export AWS_ACCESS_KEY_ID=none AWS_SECRET_ACCESS_KEY=none AWS_REGION=us-east-1

# lint NAME PARAMETER...: W3005 is a DependsOn that osls adds wherever a function has a role of its own.
lint() {
  local name=$1 parameters=()
  shift
  for parameter in "$@"; do parameters+=(--param "$parameter"); done
  serverless package --package "$packages/$name" "${parameters[@]}" </dev/null >/dev/null
  "$lint" --ignore-checks W3005 -- "$packages/$name/cloudformation-template-update-stack.json"
  echo "cfn-lint: $name is clean"
}

lint default
lint everything table=some-table vpcSubnetIds=subnet-0123456789abcdef0,subnet-0123456789abcdef1 \
  vpcSecurityGroupIds=sg-0123456789abcdef0 alarmTopicArn=arn:aws:sns:us-east-1:123456789012:on-call \
  kmsKeyArn=arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555 \
  assumableRoleArns=arn:aws:iam::210987654321:role/kubeconfigs clusterDimension=true logRetentionDays=7 admission=on
