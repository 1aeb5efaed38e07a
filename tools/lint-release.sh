#!/usr/bin/env bash
# Checks the workflows, and parses the Terraform module with its inputs and outputs. The programs for this are Go modules.
set -euo pipefail
cd "$(dirname "$0")/.."

export GOFLAGS=-mod=mod
go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 -shellcheck= -pyflakes= .github/workflows/*.yml
go run github.com/hashicorp/terraform-config-inspect@v0.0.0-20260904064934-75d64de68c31 --json deploy/terraform |
  node -e '
    const { variables, outputs, diagnostics } = JSON.parse(require("fs").readFileSync(0, "utf8"));
    const undescribed = Object.values({ ...variables, ...outputs }).filter(({ description }) => !description);
    if (diagnostics || undescribed.length > 0) {
      console.error(JSON.stringify({ diagnostics, undescribed }, null, 1));
      process.exit(1);
    }
    console.log(`Terraform: ${Object.keys(variables).length} inputs, ${Object.keys(outputs).length} outputs`);'
