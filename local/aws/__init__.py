"""The simulated AWS of the local stack: moto, and in front of it what moto lacks.

Every answer carries ``x-srvmod-simulated: true``; nothing here ever talks to AWS.
"""

from srvmod.local.aws import regions

regions.install()  # before moto, which asks for EC2's regions when it is imported

from srvmod.local.aws.determinism import install  # noqa: E402

install()  # here, because moto's services take their clock and ids by name when they are first imported
