"""`pulumi-language-python` for tests and the local stack, where an official Pulumi installation isn't at hand."""
