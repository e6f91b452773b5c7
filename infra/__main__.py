"""What `pulumi up` runs."""

from srvmod.infra.program import program

program()
