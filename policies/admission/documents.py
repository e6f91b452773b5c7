"""Every policy, and the files that hold them."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from srvmod.contract import Clause
from srvmod.policies.admission import (
    engines,
    kinds,
    operations,
    options,
    pools,
    shares,
    speculation,
    surroundings,
    weight_cache,
    words,
)
from srvmod.policies.admission.policy import Policy, Resource, Validation
from srvmod.policies.config import Config
from srvmod.policies.engine_versions import table
from srvmod.policies.rules.subjects import SESSIONS_ANNOTATION

HEADER = "# Rendered by `srvmod admission render` from policies/admission; edits are lost.\n"
WORKLOADS = (
    Resource("apps", "v1", ("deployments", "statefulsets", "daemonsets")),
    Resource("apps", "v1", ("replicasets",), ("CREATE",)),
    Resource("", "v1", ("pods", "replicationcontrollers"), ("CREATE",)),
    Resource("batch", "v1", ("jobs", "cronjobs"), ("CREATE",)),
)
JUDGED = {
    "changed": "request.operation == 'CREATE' || object.spec != oldObject.spec || "
    + " || ".join(
        f"object.metadata.?annotations[?'{note}'] != oldObject.metadata.?annotations[?'{note}']"
        for note in (SESSIONS_ANNOTATION, shares.ENGINES_ANNOTATION)
    )
}
"""What a controller notes, and what only waits for its finalizers, isn't judged anew."""


def policies(config: Config | None = None) -> list[Policy]:
    """All policies, with the numbers of a configuration."""
    chosen = config or Config()
    version = table(chosen.engine_version)
    pod = words.variables(version) | engines.more_variables()
    judged = [*options.all_of(version), *shares.validations(), *speculation.validations(), *operations.validations()]
    return [
        Policy(
            "engines",
            "One engine: its pod, its command line, its variables, and its share of the sessions.",
            WORKLOADS,
            pod | options.variables(version) | shares.variables(chosen) | operations.variables(),
            judged,
            JUDGED,
        ),
        Policy(
            "no-simulation",
            "Where people are served, nothing simulates an engine. Not bound in environments with simulated machines.",
            WORKLOADS,
            {name: pod[name] for name in ("spec", "containers", "engines", "one", "words", "simulated")},
            [
                Validation(
                    Clause.INV_SRVMOD_01,
                    "simulated-engine",
                    "!variables.simulated && !variables.containers.exists(c, c.image.contains('srvmod/engine'))",
                    "the simulated engine answers nonsense",
                    "vllm serve",
                )
            ],
            JUDGED,
            scope="served",
        ),
        surroundings.groups(),
        kinds.kinds(),
        surroundings.routes(chosen),
        surroundings.scalers(version),
        pools.pools(),
        weight_cache.pods(),
        weight_cache.nodes(),
    ]


def files(config: Config | None = None) -> Mapping[str, str]:
    """Name to content of each file of `manifests/admission/`."""
    return {f"{one.name}.yaml": HEADER + _yaml(one) for one in policies(config)}


def _yaml(policy: Policy) -> str:
    # Both emitters write the same bytes; C's is ten times as fast.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return yaml.dump(policy.document(), Dumper=dumper, sort_keys=False, width=110, allow_unicode=True)
