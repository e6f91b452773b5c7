"""Names that settings, their loaders and their schema share."""

PRODUCT = "srvmod"
"""Name of the Pulumi project, and the namespace of its settings."""

SECRET_KEYS = frozenset({"apiKeys"})
"""Settings that hold secrets: encrypted in the file, read by the program only as Pulumi secrets, never here."""
