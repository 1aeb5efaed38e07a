# Deploys the release that this folder is in as a CloudFormation stack.
terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = { source = "hashicorp/aws", version = ">= 5.0" }
  }
}

locals {
  release = "${path.module}/.."
  # Keys end in the version and the file, as the template expects; CloudFormation then updates the code.
  packages = merge([
    for folder in concat([local.release], var.previous_releases) : {
      for file in concat(["template.json"], tolist(fileset(folder, "*.zip"))) :
      "${split(" ", jsondecode(file("${folder}/template.json")).Description)[1]}/${file}" => "${folder}/${file}"
    }
  ]...)
  version = split(" ", jsondecode(file("${local.release}/template.json")).Description)[1]
}

data "aws_s3_bucket" "packages" {
  bucket = var.bucket
}

resource "aws_s3_object" "package" {
  for_each    = local.packages
  bucket      = data.aws_s3_bucket.packages.id
  key         = "${var.prefix}${each.key}"
  source      = each.value
  source_hash = filesha256(each.value)

  # An update that fails rolls back to the packages of the previous release.
  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_cloudformation_stack" "this" {
  name         = var.name
  template_url = "https://${data.aws_s3_bucket.packages.bucket_regional_domain_name}/${aws_s3_object.package["${local.version}/template.json"].key}"
  capabilities = ["CAPABILITY_IAM"]
  parameters   = merge(var.parameters, { CodeBucket = var.bucket, CodePrefix = var.prefix })
  iam_role_arn = var.deployment_role_arn
  tags         = var.tags
  depends_on   = [aws_s3_object.package]
}
