"""The `aws` provider: custom resources made in the simulated AWS through boto3."""
