output "table_name" {
  description = "The table that holds everything."
  value       = aws_cloudformation_stack.this.outputs["TableName"]
}

output "stack_id" {
  description = "The ARN of the stack."
  value       = aws_cloudformation_stack.this.id
}

output "outputs" {
  description = "All outputs of the stack: the next commands, the dashboard, the URL of the webhook."
  value       = aws_cloudformation_stack.this.outputs
}
