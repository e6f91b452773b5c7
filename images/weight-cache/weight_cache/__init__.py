"""The agent that fills a node's NVMe with one revision of a model's weights, verifies it and opens the node.

It downloads s3://bucket/prefix/revision/ as its manifest.json lists it, checks size and SHA-256 of every file, puts
the revision in place with one rename, writes READY, and only then removes the startup taint from its node.
"""
