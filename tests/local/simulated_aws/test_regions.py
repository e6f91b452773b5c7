"""The short way to a service's regions gives what botocore's own gives."""

import pytest
from botocore.session import Session

from srvmod.local.aws import regions


@pytest.mark.parametrize("service", [*sorted(regions.PREFIXES), "ecr", "no-such-service"])
def test_regions_are_botocores(service: str) -> None:
    session = Session()
    assert Session.get_available_regions is regions.get_available_regions
    for partition in ("aws", "aws-cn", "aws-us-gov"):
        asked = session.get_available_regions(service, partition)
        assert asked == regions._ask_model(session, service, partition)
        assert asked or service in {"iam", "no-such-service"}, "iam has no regions of its own"
