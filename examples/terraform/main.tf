# Deploys a release of kube-bootstrap-controller as a CloudFormation stack: unpack the release, then
#   terraform apply -var release=./kube-bootstrap-controller-0.1.0 -var bucket=my-packages
# The bucket must exist, in the region of the stack.
terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = { source = "hashicorp/aws", version = ">= 5.0" }
  }
}

variable "release" {
  description = "The folder of an unpacked release."
  type        = string
}

variable "bucket" {
  description = "The bucket for the packages."
  type        = string
}

variable "name" {
  description = "The name of the stack."
  type        = string
  default     = "kube-bootstrap-controller-prod"
}

variable "parameters" {
  description = "Parameters of the template: docs/parameters.md."
  type        = map(string)
  default     = {}
}

locals {
  # A new release has other sums, and so other keys: CloudFormation then updates the code.
  prefix = "kube-bootstrap-controller/${substr(filesha256("${var.release}/SHA256SUMS"), 0, 16)}/"
}

resource "aws_s3_object" "package" {
  for_each    = fileset(var.release, "*.zip")
  bucket      = var.bucket
  key         = "${local.prefix}${each.value}"
  source      = "${var.release}/${each.value}"
  source_hash = filesha256("${var.release}/${each.value}")
}

resource "aws_s3_object" "template" {
  bucket      = var.bucket
  key         = "${local.prefix}template.json"
  source      = "${var.release}/template.json"
  source_hash = filesha256("${var.release}/template.json")
}

resource "aws_cloudformation_stack" "this" {
  name         = var.name
  template_url = "https://${var.bucket}.s3.amazonaws.com/${aws_s3_object.template.key}"
  capabilities = ["CAPABILITY_IAM"]
  parameters   = merge(var.parameters, { CodeBucket = var.bucket, CodePrefix = local.prefix })
  depends_on   = [aws_s3_object.package]
}

output "outputs" {
  value = aws_cloudformation_stack.this.outputs
}
