"""IAM, KMS, SQS and EventBridge documents as pure functions."""
