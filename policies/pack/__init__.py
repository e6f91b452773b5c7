"""The second gate: the same rules on what a Pulumi program declares. Only this package imports Pulumi."""
