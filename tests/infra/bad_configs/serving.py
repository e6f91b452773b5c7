"""Model, traffic, latency targets and engine."""

from tests.infra.bad_configs.base import Case

CASES: tuple[Case, ...] = (
    Case("other model", {"model.id": "gpt2"}, "srvmod:model.id", "gpt2", "Meta-Llama-3-70B-Instruct"),
    Case("moving revision", {"model.revision": "main"}, "srvmod:model.revision", "main", "never change"),
    Case("KV type", {"model.kvCacheDtype": "int4"}, "srvmod:model.kvCacheDtype", "int4", "fp8 or bf16"),
    Case("context too long", {"model.maxModelLen": 16384}, "srvmod:model.maxModelLen", "16384", "at most 8192"),
    Case("context too short", {"model.maxModelLen": 1000}, "srvmod:model.maxModelLen", "1000", "1024 to 8192"),
    Case("traffic of 0 sessions", {"traffic.sessions": 0}, "srvmod:traffic.sessions", "0", "1 to 100,000"),
    Case("negative sessions", {"traffic.sessions": -650}, "srvmod:traffic.sessions", "-650", "1 to 100,000"),
    Case("negative prompt", {"traffic.promptTokens": -1}, "srvmod:traffic.promptTokens", "-1", "1 to 1,000,000"),
    Case("hit rate above 1", {"traffic.prefixHitRate": 1.5}, "srvmod:traffic.prefixHitRate", "1.5", "0 to less than 1"),
    Case(
        "not a number",
        {"traffic.prefixHitRate": float("nan")},
        "srvmod:traffic.prefixHitRate",
        "NaN",
        "0 to less than 1",
    ),
    Case("impossible rate", {"traffic.tokensPerSecond": 80000}, "srvmod:traffic.tokensPerSecond", "80000", "at most"),
    Case("looser ITL", {"slo.itlP95Ms": 60}, "srvmod:slo.itlP95Ms", "60", "30 ms (clause INV-SRVMOD-02)"),
    Case("impossible ITL", {"slo.itlP95Ms": 5}, "srvmod:slo.itlP95Ms", "5", "at least 1"),
    Case("impossible TTFT", {"slo.ttftMs": 20}, "srvmod:slo.ttftMs", "20", "at least"),
    Case("TP 8", {"engine.tensorParallelSize": 8}, "srvmod:engine.tensorParallelSize", "8", "4 (clause MC-HW-01)"),
    Case("TP 2", {"engine.tensorParallelSize": 2}, "srvmod:engine.tensorParallelSize", "2", "4 (clause MC-HW-01)"),
    Case(
        "3 engines per node", {"engine.enginesPerNode": 3}, "srvmod:engine.enginesPerNode", "3", "2 (clause MC-HW-01)"
    ),
    Case("simulated engine on AWS", {"engine.kind": "simulated"}, "srvmod:engine.kind", "simulated", "vllm"),
    Case(
        "drafts that nobody takes",
        {"engine.speculation": {"method": "draft_model", "acceptance": 0.01}},
        "srvmod:engine.speculation.acceptance",
        "0.01",
        "no engine.speculation",
    ),
    Case(
        "draft model that doesn't exist",
        {"engine.speculation": {"method": "draft_model", "draftModel": "meta-llama/Llama-3-1B"}},
        "srvmod:engine.speculation.draftModel",
        "Llama-3-1B",
        "Llama-3.2-1B-Instruct",
    ),
    Case("no engine", {"engine.minEngines": 0}, "srvmod:engine.minEngines", "0", "1 to 2,000"),
    Case(
        "engines reversed",
        {"engine.minEngines": 10, "engine.maxEngines": 4},
        "srvmod:engine.maxEngines",
        "4",
        "at least 10",
    ),
    Case(
        "waiver of nothing",
        {"engine.planWaiver": "head-of-ml: nothing is missed here"},
        "srvmod:engine.planWaiver",
        "nothing is missed here",
        "remove the key",
    ),
    Case(
        "small budget",
        {"engine.minEngines": 2, "engine.maxNumBatchedTokens": 512},
        "srvmod:engine.maxNumBatchedTokens",
        "512",
        "at least 976",
    ),
    Case("no drain", {"engine.shutdownTimeoutSeconds": 0}, "srvmod:engine.shutdownTimeoutSeconds", "0", "1 to 600"),
    Case(
        "short drain", {"engine.shutdownTimeoutSeconds": 5}, "srvmod:engine.shutdownTimeoutSeconds", "5", "at least 15"
    ),
    Case(
        "floating image",
        {"engine.image": "docker.io/vllm/vllm-openai:latest"},
        "srvmod:engine.image",
        "latest",
        "not 'latest'",
    ),
    Case(
        "image without tag",
        {"engine.image": "docker.io/vllm/vllm-openai"},
        "srvmod:engine.image",
        "vllm-openai",
        "fixed tag or digest",
    ),
    Case(
        "own flag again",
        {"engine.extraArgs": ["--tensor_parallel_size=8"]},
        "srvmod:engine.extraArgs[0]",
        "--tensor_parallel_size=8",
        "engine.tensorParallelSize",
        "--tensor_parallel_size",
    ),
)
