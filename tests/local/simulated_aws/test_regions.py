"""The short way to a service's regions gives what botocore's own gives."""

import gzip
import re
from pathlib import Path

import botocore
import pytest
from botocore.session import Session

from srvmod.local.aws import regions

DATA = Path(botocore.__file__).parent / "data"


@pytest.mark.parametrize("service", sorted(regions.PREFIXES))
def test_prefixes_are_those_of_the_api_models(service: str) -> None:
    """Read from the first bytes of each model: reading all of EC2's is what this file is there to save."""
    model = max((DATA / service).glob("*/service-2.json.gz"))
    with gzip.open(model, "rt", encoding="utf-8") as text:
        found = re.search(r'"endpointPrefix"\s*:\s*"([^"]+)"', text.read(4096))
    assert found
    assert regions.PREFIXES[service] == found[1]


@pytest.mark.parametrize("service", ["sts", "ecr", "no-such-service"])
@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_regions_are_botocores(service: str, partition: str) -> None:
    session = Session()
    assert Session.get_available_regions is regions.get_available_regions
    asked = session.get_available_regions(service, partition)
    assert asked == regions._ask_model(session, service, partition)
    assert bool(asked) == (service != "no-such-service")
