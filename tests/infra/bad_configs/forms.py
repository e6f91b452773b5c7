"""Values that are missing, of a wrong type, or of keys that don't exist."""

from tests.infra.bad_configs.base import DELETE, Case

EXISTING = {"vpcId": "vpc-0123456789abcdef0", "privateSubnetIds": ["subnet-0123456789abcdef0"]}

CASES: tuple[Case, ...] = (
    Case("account missing", {"aws.accountId": DELETE}, "srvmod:aws.accountId", "(missing)", "12 digits", "srvmod:aws"),
    Case("section missing", {"traffic": DELETE}, "srvmod:traffic.sessions", "(missing)", "whole number", ""),
    Case(
        "sessions missing",
        {"traffic.sessions": DELETE},
        "srvmod:traffic.sessions",
        "(missing)",
        "1 to 100,000",
        "srvmod:traffic",
    ),
    Case(
        "revision missing", {"model.revision": DELETE}, "srvmod:model.revision", "(missing)", "not main", "srvmod:model"
    ),
    Case("image missing", {"engine": {}}, "srvmod:engine.image", "(missing)", "fixed tag or digest", "srvmod:engine"),
    Case("account as number", {"aws.accountId": 444455556666}, "srvmod:aws.accountId", "444455556666", "in quotes"),
    Case("section as text", {"traffic": "650"}, "srvmod:traffic", '"650"', "a mapping with the keys sessions"),
    Case("section as list", {"aws": []}, "srvmod:aws", "[]", "a mapping with the keys accountId"),
    Case("section empty", {"model": None}, "srvmod:model", "null", "a mapping with the keys"),
    Case("sessions as text", {"traffic.sessions": "650"}, "srvmod:traffic.sessions", '"650"', "whole number"),
    Case("sessions as fraction", {"traffic.sessions": 650.5}, "srvmod:traffic.sessions", "650.5", "whole number"),
    Case("flag as text", {"model.kvScales": "yes"}, "srvmod:model.kvScales", '"yes"', "true or false"),
    Case("zones as text", {"pool.zones": "us-east-1a"}, "srvmod:pool.zones", '"us-east-1a"', "a list of different"),
    Case(
        "version as number",
        {"cluster.kubernetesVersion": 1.36},
        "srvmod:cluster.kubernetesVersion",
        "1.36",
        "in quotes",
    ),
    Case("admins as text", {"cluster.admins": "root"}, "srvmod:cluster.admins", '"root"', "principalArn"),
    Case("tags as list", {"tags": ["a"]}, "srvmod:tags", '["a"]', "a mapping from text"),
    Case("tag as number", {"tags": {"cost": 7}}, "srvmod:tags.cost", "7", "text in quotes"),
    Case("unknown key", {"traffic.promptToken": 5}, "srvmod:traffic.promptToken", "5", "promptTokens"),
    Case("snake case", {"engine.min_engines": 5}, "srvmod:engine.min_engines", "5", "minEngines"),
    Case("unknown section", {"netwrok": {"a": 1}}, "srvmod:netwrok", "{a: 1}", "network"),
    Case(
        "unknown nested key",
        {"network.existing": {**EXISTING, "vpc": "x"}},
        "srvmod:network.existing.vpc",
        '"x"',
        "vpcId",
    ),
)
