"""Kubernetes objects of the platform as pure functions: plain values in, plain dictionaries out."""
