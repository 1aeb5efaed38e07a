variable "bucket" {
  description = "An existing bucket for the packages, in the region of the stack."
  type        = string
}

variable "prefix" {
  description = "What the keys of the packages begin with."
  type        = string
  default     = "kube-bootstrap-controller/"
}

variable "previous_releases" {
  description = "Folders of unpacked releases whose packages stay in the bucket: at least the one that the stack runs now."
  type        = list(string)
  default     = []
}

variable "name" {
  description = "The name of the stack, of at most 45 characters."
  type        = string
  default     = "kube-bootstrap-controller-prod"
}

variable "parameters" {
  description = "Parameters of the template (docs/parameters.md). Those that are not here have their defaults."
  type        = map(string)
  default     = {}
}

variable "deployment_role_arn" {
  description = "The role that CloudFormation assumes."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of the stack and of everything in it."
  type        = map(string)
  default     = {}
}
