"""What `pulumi preview --policy-pack policies` runs: serves the pack until the engine ends it."""

from pulumi_policy import EnforcementLevel, PolicyPack

from srvmod.policies.pack.policies import NAME, policies

PolicyPack(NAME, policies(), EnforcementLevel.MANDATORY)
