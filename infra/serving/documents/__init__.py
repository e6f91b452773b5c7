"""Kubernetes objects of serving as pure functions: plain values in, plain dictionaries out."""
