"""Asks an AWS account, before a deployment, whether it has what an environment needs. Changes nothing."""
