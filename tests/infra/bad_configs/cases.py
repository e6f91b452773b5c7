"""All bad configurations."""

from tests.infra.bad_configs import cloud, edge, forms, monitoring, serving
from tests.infra.bad_configs.base import Case

CASES: tuple[Case, ...] = (*forms.CASES, *cloud.CASES, *serving.CASES, *edge.CASES, *monitoring.CASES)
